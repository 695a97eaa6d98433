"""Runs modules of mpi4py's tests in one rank of a job, and writes how each test ends.

    python ci/mpi4py_tests.py TESTS FOLDER [OPTION...]

TESTS is the folder `test` of mpi4py's source distribution, whose `main.py` finds the tests and
has the options. Each rank adds to FOLDER/RANK.txt, for each test, `passed`, `skipped` or `failed`
and the name; and before it begins, `began`.
"""

import pathlib
import sys
import unittest

tests, folder, *options = sys.argv[1:]
sys.path.insert(0, tests)
sys.argv = [str(pathlib.Path(tests) / "main.py"), *options]

import main  # noqa: E402


class Lines(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        from mpi4py import MPI

        name = f"{MPI.COMM_WORLD.Get_rank()}.txt"
        self.lines = open(pathlib.Path(folder) / name, "a", encoding="utf-8")

    def tell(self, how, test):
        print(how, test.id(), file=self.lines, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.tell("began", test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell("passed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell("skipped", test)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.tell("skipped", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell("failed", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell("failed", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.tell("failed", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.tell("failed", test)


class Runner(unittest.TextTestRunner):
    resultclass = Lines


sys.dont_write_bytecode = True
main.main(module=None, testRunner=Runner)
