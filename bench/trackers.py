"""What records of 20 metrics cost.

step_us: a step of the training, which hands them to the recorder with all trackers behind it;
median, target 20. The others run on the recorder's thread: microseconds per record, and
milliseconds to draw loss.svg and loss.png, files and all, of a run with a million steps. They are
drawn every 30 s at most: target 300, 1 % of that.
"""
import peers

peers.report("trackers", **peers.run_json([str(peers.BIN / "tracker_worker")]), target_step_us=20, target_redraw_ms=300)
