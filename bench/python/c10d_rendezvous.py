"""torchelastic's c10d rendezvous with many agents, as threads of one process: seconds until all have their rank."""
import json
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler

count = int(sys.argv[1])
limit = timedelta(seconds=600)
server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=limit)
ranks = []


def join(number):
    store = server if number == 0 else TCPStore("127.0.0.1", server.port, wait_for_workers=False, timeout=limit)
    handler = DynamicRendezvousHandler.from_backend(
        run_id="bench",
        store=store,
        backend=C10dRendezvousBackend(store, "bench"),
        min_nodes=count,
        max_nodes=count,
        local_addr="127.0.0.1",
    )
    ranks.append(handler.next_rendezvous().rank)
    handler._stop_heartbeats()


begin = time.perf_counter()
threads = [threading.Thread(target=join, args=(number,), daemon=True) for number in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if sorted(ranks) != list(range(count)):
    sys.exit(f"c10d_rendezvous: {len(ranks)} of {count} agents have a rank")
print(json.dumps({"nodes": count, "world_s": time.perf_counter() - begin}), flush=True)
