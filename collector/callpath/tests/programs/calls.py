import ctypes, threading

hook = ctypes.CFUNCTYPE(None)(ADDRESS)  # calls without the GIL


def inner():
    hook()


class Ring:
    def turn(self):
        inner()


def größe_日本():
    Ring().turn()


def recurse(depth):
    if depth == 0:
        hook()
    else:
        recurse(depth - 1)


def generator():
    yield hook()


def several_lines():
    hook(
    )
    hook()


inner()
größe_日本()
größe_日本()
recurse(100)
list(generator())
for _ in range(3):
    several_lines()
thread = threading.Thread(target=inner)
thread.start()
thread.join()
# Code objects that come and go, at addresses used before.
for n in range(200):
    space = {"hook": hook}
    exec(compile("\n" * n + "def f():\n hook()\nf()", "made.py", "exec"), space)
    del space
