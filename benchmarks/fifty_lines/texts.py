"""Tokens and counts."""

from benchmarks.fifty_lines.program import Program, each, integers


def virtual_machine(code, argument):
    """The result of a program for a machine with a stack and registers: pairs of an operation and an operand."""
    stack = []
    registers = [0, argument, 1, 0]
    pc = 0
    steps = 0
    while pc + 1 < len(code) and steps < 60:
        steps += 1
        op, operand = code[pc] % 10, code[pc + 1]
        pc += 2
        if op == 0:
            stack.append(operand)
        elif op == 1:
            stack.append(registers[operand % 4])
        elif op == 2:
            if stack:
                registers[operand % 4] = stack.pop()
        elif op == 3:
            if len(stack) >= 2:
                b, a = stack.pop(), stack.pop()
                stack.append(a + b)
        elif op == 4:
            if len(stack) >= 2:
                b, a = stack.pop(), stack.pop()
                stack.append(a - b)
        elif op == 5:
            if len(stack) >= 2:
                b, a = stack.pop(), stack.pop()
                stack.append((a * b) % 1009)
        elif op == 6:
            if stack and stack[-1] == 0:
                pc = (operand * 2) % len(code)
        elif op == 7:
            if stack:
                stack.append(stack[-1])
        elif op == 8:
            if len(stack) >= 2:
                stack[-1], stack[-2] = stack[-2], stack[-1]
        elif registers[2] > 0:
            registers[2] -= 1
            pc = (operand * 2) % len(code)
        if len(stack) > 16:
            break
    total = 0
    for value in stack:
        total = (total * 31 + value) % 10007
    for value in registers:
        total = (total * 31 + value) % 10007
    return total, steps


def run_lengths(text, limit):
    """A checksum of a text that is packed by run lengths and by references to what came before."""
    out = []
    i = 0
    n = len(text)
    literals, runs, copies = 0, 0, 0
    while i < n:
        run = 1
        while i + run < n and text[i + run] == text[i] and run < limit:
            run += 1
        best_length, best_back = 0, 0
        for start in range(max(0, i - limit), i):
            length = 0
            while i + length < n and length < limit and text[start + length] == text[i + length]:
                length += 1
            if length > best_length:
                best_length = length
                best_back = i - start
        if run >= 3 and run >= best_length:
            out.append(200 + run)
            out.append(text[i])
            runs += 1
            i += run
        elif best_length >= 3:
            out.append(100 + best_length)
            out.append(best_back)
            copies += 1
            i += best_length
        else:
            out.append(text[i])
            literals += 1
            i += 1
    a, b = 1, 0
    for byte in out:
        a = (a + byte) % 251
        b = (b + a) % 251
    back = []
    k = 0
    while k < len(out):
        if out[k] > 200:
            for _ in range(out[k] - 200):
                back.append(out[k + 1])
            k += 2
        elif out[k] > 100:
            k += 2
        else:
            back.append(out[k])
            k += 1
    return b * 256 + a, literals, runs, copies, len(back)


PROGRAMS = (
    Program(virtual_machine, each(integers(0, 10, 24), integers(0, 9))),
    Program(run_lengths, each(integers(0, 3, 24), integers(4, 8))),
)
