"""What is no test and no part of the program: recordings, benchmarks, fuzzing."""
