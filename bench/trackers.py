"""What the trackers cost: microseconds per record of 20 metrics, milliseconds per redraw.

The redraw is that of loss.svg and loss.png, files and all, of a run with a million steps. They
are drawn every 30 s at most: target is 300 ms, 1 % of that.
"""
import peers

peers.report("trackers", **peers.run_json([str(peers.BIN / "tracker_worker")]), target_ms=300)
