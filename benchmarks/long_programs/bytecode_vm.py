"""A stack machine with a call stack, labels, locals and traps."""


class VMError(Exception):
    pass


class StackUnderflow(VMError):
    pass


class Frame:
    def __init__(self, return_pc, args):
        self.return_pc, self.locals = return_pc, dict(enumerate(args))


def assemble(lines):
    """Turn text lines into (opcode, argument) pairs, resolving labels."""
    labels, pending = {}, []
    for line in lines:
        line = line.split(";")[0].strip()
        if line.endswith(":"):
            labels[line[:-1]] = len(pending)
        else:
            pending.append(line.split())
    return [(op.upper(), [labels[a] if a in labels else int(a) for a in rest]) for op, *rest in pending]


BINARY = {"ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "MOD": lambda a, b: a % b,
          "MUL": lambda a, b: (a * b) % 1_000_003, "LT": lambda a, b: int(a < b)}


class Machine:
    def __init__(self, code, max_steps=1500):
        self.code = code
        self.stack = []
        self.frames = [Frame(-1, [])]
        self.pc = self.steps = 0
        self.max_steps, self.deepest = max_steps, 1
        self.output = []

    def pop(self):
        if not self.stack:
            raise StackUnderflow(f"pc={self.pc}")
        return self.stack.pop()

    def step(self):
        op, args = self.code[self.pc]
        self.pc += 1
        self.steps += 1
        if self.steps > self.max_steps:
            raise VMError("step limit")
        frame = self.frames[-1]
        match op:
            case "PUSH":
                self.stack.append(args[0])
            case "DUP":
                self.stack += [self.pop()] * 2
            case "LOAD":
                self.stack.append(frame.locals.get(args[0], 0))
            case "STORE":
                frame.locals[args[0]] = self.pop()
            case "JMP":
                self.pc = args[0]
            case "JZ":
                if self.pop() == 0:
                    self.pc = args[0]
            case "CALL":
                target, argc = args
                values = [self.pop() for _ in range(argc)][::-1]
                self.frames.append(Frame(self.pc, values))
                self.deepest = max(self.deepest, len(self.frames))
                self.pc = target
            case "RET":
                self.pc = self.frames.pop().return_pc
            case "PRINT":
                self.output.append(self.pop())
            case "HALT":
                return False
            case _ if op in BINARY:
                b, a = self.pop(), self.pop()
                self.stack.append(BINARY[op](a, b))
            case _:
                raise VMError(f"bad opcode {op}")
        return True


def solve(program):
    vm = Machine(assemble(program))
    try:
        while vm.step():
            pass
        status = "ok"
    except ZeroDivisionError:
        status = "division by zero"
    except VMError as e:
        status = f"{type(e).__name__}: {e}"
    return status, vm.steps, vm.deepest, vm.output


FACT = ["push {n}", "call fact 1", "print", "halt", "fact:", "load 0", "jz one", "load 0",
        "load 0 ; n", "push 1", "sub", "call fact 1", "mul", "ret", "one:", "push 1", "ret"]
FIB = ["push {n}", "call fib 1", "print", "halt", "fib:", "load 0", "push 2", "lt", "jz rec", "load 0", "ret", "rec:",
       "load 0", "push 1", "sub", "call fib 1", "load 0", "push 2", "sub", "call fib 1", "add", "ret"]
LOOP = ["push {n}", "store 0", "top:", "load 0", "jz end", "load 1", "load 0", "add", "dup", "print", "store 1",
        "load 0", "push 1", "sub", "store 0", "jmp top", "end:", "load 1", "push {m}", "mod", "print", "halt"]
GCD = ["push {n}", "push {m}", "call gcd 2", "print", "halt", "gcd:", "load 1", "jz done", "load 1",
       "load 0", "load 1", "mod", "call gcd 2", "ret", "done:", "load 0", "ret"]
BROKEN = LOOP[:-4] + ["add", "halt"]


def examples(n):
    import random
    r = random.Random(404)
    out = []
    for _ in range(n):
        prog, hi = r.choice([(FACT, 40), (FIB, 10), (LOOP, 40), (GCD, 5000), (BROKEN, 9)])
        v, m = r.randint(hi // 4, hi), r.choice([0, r.randint(1, 60), r.randint(1, 60)])
        out.append(([line.format(n=v, m=m) for line in prog],))
    return out
