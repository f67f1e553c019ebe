# Tests of what ThreadSanitizer itself changes; ctest leaves them out of that build.
set(CTEST_CUSTOM_TESTS_IGNORE
  # Peaks of memory: its own is counted.
  unit.Amplification.OfManySmallObjectsIsOfTheirOrder
  # It takes the signal of the crash for itself, after a stack overflow in half of the runs.
  interop.PrepareInterop.FilesOnWhichHdf5CrashesOrHangsDoNotStopIt
  unit.CrashHandler.AStackOverflowLeavesItsStack
  # Its own thread is counted.
  distributed.SpareProcess.HoldsNothingWhileItWaits
  # Its vfork() is a fork(), after which the thread that started the process ends too early.
  unit.SideProcessTest.IsKilledWithTheThreadThatStartedIt)
