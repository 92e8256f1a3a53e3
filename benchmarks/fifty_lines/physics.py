"""Simulations with events."""

import math

from benchmarks.fifty_lines.program import Program, each, uniform


def bouncing_ball(height, speed, restitution):
    """Energy of a ball that bounces with drag until it rests, with a step that adapts near the floor."""
    g, drag, mass = 9.81, 0.05, 1.0
    t, y, v = 0.0, height, speed
    bounces = 0
    highest = y
    lost = 0.0
    while t < 4.0:
        dt = 0.05
        if y < 0.5:
            dt = 0.02
        if y < 0.1 and v < 0:
            dt = 0.005
        a = -g
        if v > 0:
            a = a - drag * v * v
        else:
            a = a + drag * v * v
        v_next = v + dt * a
        y_next = y + dt * 0.5 * (v + v_next)
        if y_next < 0:
            share = y / (y - y_next)
            impact = v + share * (v_next - v)
            if abs(impact) < 0.2:
                return lost + 0.5 * mass * impact * impact
            before = 0.5 * mass * impact * impact
            v = -restitution * impact
            lost += before - 0.5 * mass * v * v
            y = 0.0
            t += share * dt
            bounces += 1
            if bounces > 12:
                break
        else:
            t += dt
            y, v = y_next, v_next
        if y > highest:
            highest = y
    energy = mass * g * y + 0.5 * mass * v * v
    if bounces == 0:
        return energy + lost
    return energy + lost + 0.01 * highest


def pendulum(angle, speed, length):
    """The time until a damped pendulum has turned back four times, by Heun's method with error control."""

    def slope(a, w):
        return w, -9.81 / length * math.sin(a) - 0.1 * w

    t, h = 0.0, 0.05
    turns = 0
    previous = speed
    rejected = 0
    total = 0.0
    while turns < 4 and t < 20.0:
        a1, w1 = slope(angle, speed)
        a2, w2 = slope(angle + h * a1, speed + h * w1)
        error = abs(h * (a2 - a1)) + abs(h * (w2 - w1))
        if error > 0.05 and h > 1e-3:
            h = h * 0.5
            rejected += 1
            continue
        angle = angle + 0.5 * h * (a1 + a2)
        speed = speed + 0.5 * h * (w1 + w2)
        t += h
        total += abs(angle) * h
        if angle > math.pi:
            angle -= 2 * math.pi
        elif angle < -math.pi:
            angle += 2 * math.pi
        if previous > 0 and speed <= 0:
            turns += 1
        elif previous < 0 and speed >= 0:
            turns += 1
        previous = speed
        if error < 0.01:
            h = h * 1.5
            if h > 0.2:
                h = 0.2
    if turns == 4:
        return t + total
    return 20.0 + total + 0.001 * rejected


def rocket(fuel, thrust, angle):
    """How far a rocket of two stages flies in thinning air."""
    mass_dry, burned = 1.0, 0.0
    x, y = 0.0, 0.0
    vx, vy = 0.0, 0.0
    stage = 1
    dt = 0.1
    t = 0.0
    while t < 60.0:
        density = math.exp(-y / 100.0)
        v = math.sqrt(vx * vx + vy * vy + 1e-6)
        mass = mass_dry + fuel - burned
        force = 0.0
        if stage == 1:
            force = thrust
            burned += 0.05 * thrust * dt
            if burned > 0.6 * fuel:
                stage = 2
                mass_dry = mass_dry - 0.3
        elif stage == 2:
            force = 0.4 * thrust
            burned += 0.02 * thrust * dt
            if burned >= fuel:
                stage = 3
        if v < 1.0:
            ux, uy = math.cos(angle), math.sin(angle)
        else:
            ux, uy = vx / v, vy / v
        drag = 0.002 * density * v * v
        ax = (force * ux - drag * vx / v) / mass
        ay = (force * uy - drag * vy / v) / mass - 9.81
        if t == 0.0 and ay < 0:
            ay = 0.0
        vx += dt * ax
        vy += dt * ay
        x += dt * vx
        y += dt * vy
        t += dt
        if y < 0.0 and vy < 0.0:
            break
        if stage == 3 and y > 150.0:
            dt = 0.2
        else:
            dt = 0.1
    if y >= 0.0:
        return x + 0.1 * y
    return x


PROGRAMS = (
    Program(bouncing_ball, each(uniform(1, 3), uniform(-1, 1), uniform(0.5, 0.9)), smooth=True),
    Program(pendulum, each(uniform(0.5, 2), uniform(-1, 1), uniform(0.5, 2)), smooth=True),
    Program(rocket, each(uniform(1, 2), uniform(30, 50), uniform(0.8, 1.4)), smooth=True),
)
