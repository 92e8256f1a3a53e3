"""Formulas of physics and finance, with the checks that textbooks put before them."""

from __future__ import annotations

import math
from math import pi, sqrt

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("physics", ROWS)


@row((9.0, 2.0), (5.0, 3.0), new=False)
def kinetic_energy(mass: float, velocity: float) -> float:
    if mass < 0:
        raise ValueError("The mass of a body cannot be negative")
    return 0.5 * mass * abs(velocity) * abs(velocity)


@row((1.0, 5.0, 6.0), (1.0, 2.0, 1.0))
def quadratic_roots(a, b, c):
    if a == 0:
        raise ValueError("Coefficient 'a' must not be zero.")
    delta = b * b - 4 * a * c
    root_1 = (-b + sqrt(delta)) / (2 * a)
    root_2 = (-b - sqrt(delta)) / (2 * a)
    return root_1, root_2


@row((20.0, 30.0), (30.0, 45.0))
def horizontal_distance(init_velocity, angle):
    if angle > 90 or angle < 1:
        raise ValueError("bad angle")
    radians = math.radians(angle)
    return round(init_velocity**2 * math.sin(2 * radians) / 9.80665, 2)


@row((3.0,), (1.0,), new=False)
def area_circle(radius: float) -> float:
    if radius < 0:
        raise ValueError("area_circle() only accepts non-negative values")
    return pi * radius**2


@row((10.0, 0.0, 5.0), (0.0, 2.0, 4.0))
def ohms_law(voltage: float, current: float, resistance: float) -> float:
    if (voltage, current, resistance).count(0) != 1:
        raise ValueError("One and only one argument must be 0")
    if resistance < 0:
        raise ValueError("Resistance cannot be negative")
    if voltage == 0:
        return float(current * resistance)
    elif current == 0:
        return voltage / resistance
    else:
        return voltage / current


@row((10000.0, 0.05, 3), (500.0, 0.01, 10), new=False)
def compound_interest(principal, rate, n):
    if n <= 0:
        raise ValueError("bad")
    return principal * ((1 + rate) ** n - 1)


@row((100.0, 300.0, 2.0), (50.0, 273.0, 1.0), new=False)
def ideal_gas_pressure(moles: float, kelvin: float, volume: float) -> float:
    if moles < 0 or kelvin < 0 or volume < 0:
        raise ValueError("Invalid inputs. Enter positive value.")
    return moles * kelvin * 8.314462 / volume


@row((5.0, 3.0), (-1.0, 3.0), (2.0, 400000.0))
def lorentz_factor(mass: float, velocity: float) -> float:
    c = 299792.458
    if mass < 0:
        raise ValueError("The mass of a body cannot be negative")
    if velocity > c:
        raise ValueError("faster than light")
    return mass / math.sqrt(1 - (velocity / c) ** 2)


@row((1.0, 0.0, 0.05), (0.5, 1.0, 0.1))
def pendulum(angle, speed, dt):
    steps = 0
    while angle > 0 and steps < 100:
        speed -= 9.81 * math.sin(angle) * dt
        angle += speed * dt
        steps += 1
    return steps, angle


@row((-40.0,), (100.0,), (36.6,))
def temperature_scales(celsius, ndigits=1):
    return {
        "fahrenheit": round(celsius * 9 / 5 + 32, ndigits),
        "kelvin": round(celsius + 273.15, ndigits),
    }


@row(([1.0, 2.0, 3.0], [0.0, 1.0, 4.0]), ([2.0], [5.0]))
def center_of_mass(masses, places):
    total = 0.0
    moment = 0.0
    for m, x in zip(masses, places):
        if m <= 0:
            raise ValueError("Mass of all particles must be greater than 0")
        total += m
        moment += m * x
    return round(moment / total, 2)


@row((1000.0, 0.05, 12), (500.0, 0.1, 3), new=False)
def loan_payment(principal, rate, months):
    rate = rate / 12
    numerator = principal * rate * (1 + rate) ** months
    return numerator / ((1 + rate) ** months - 1)


@row(([1.0, 2.0, 4.0, 8.0],), ([3.0, 3.0],))
def mean_and_deviation(data):
    mean = sum(data) / len(data)
    variance = sum((x - mean) ** 2 for x in data) / len(data)
    return mean, math.sqrt(variance)
