"""Money over time."""

import math

from benchmarks.fifty_lines.program import Program, each, integers, uniform


def mortgage(rate, price, income):
    """What a house costs in all: instalments, repairs, a fixed rate that ends, and repayments in good years."""
    debt = price
    paid = 0.0
    month = 0
    monthly = rate / 12
    savings = 0.1 * price
    year_rate = rate
    while debt > 0 and month < 360:
        month += 1
        interest = debt * monthly
        instalment = 0.3 * income
        if instalment < interest:
            instalment = interest * 1.01
        if instalment > debt + interest:
            instalment = debt + interest
        debt = debt + interest - instalment
        paid += instalment
        savings += 0.7 * income - 0.55 * income
        if month % 12 == 0:
            income = income * 1.02
            if month == 120:
                year_rate = rate * 1.3
            elif month == 240:
                year_rate = rate * 0.9
            monthly = year_rate / 12
            if savings > 0.3 * debt:
                extra = 0.05 * price
                if extra > debt:
                    extra = debt
                debt -= extra
                paid += extra
                savings -= extra
            repair = 0.01 * price
            if month > 180:
                repair = repair * 1.5
            if savings < repair:
                debt += repair - savings
                savings = 0.0
            else:
                savings -= repair
            paid += repair
    if debt > 0:
        paid += debt * (1 + rate)
    return paid - savings


def implied_volatility(price, strike, years):
    """The volatility at which Black and Scholes give a price, by Newton's method inside of a bracket."""
    spot, rate = 1.0, 0.02

    def normal(x):
        k = 1.0 / (1.0 + 0.2316419 * abs(x))
        poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * poly
        if x > 0:
            return 1.0 - tail
        return tail

    def call(sigma):
        root = sigma * math.sqrt(years)
        d1 = (math.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / root
        return spot * normal(d1) - strike * math.exp(-rate * years) * normal(d1 - root)

    def vega(sigma):
        root = sigma * math.sqrt(years)
        d1 = (math.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / root
        return spot * math.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi) * math.sqrt(years)

    low, high = 0.01, 3.0
    if price <= call(low):
        return low * price / (price + 1e-3)
    sigma = 0.3
    steps = 0
    while steps < 40:
        steps += 1
        error = call(sigma) - price
        if abs(error) < 1e-6:
            break
        if error > 0:
            high = sigma
        else:
            low = sigma
        slope = vega(sigma)
        if slope > 1e-6:
            guess = sigma - error / slope
        else:
            guess = 0.5 * (low + high)
        if guess <= low or guess >= high:
            guess = 0.5 * (low + high)
        sigma = guess
    return sigma


def income_tax(wage, gains, children, married):
    """Tax by brackets, deductions, credits that fade out, and a minimum."""
    deduction = 13.0
    if married == 1:
        deduction = 26.0
    scale = 1.0
    if married == 1:
        scale = 2.0
    taxable = wage - deduction
    if taxable < 0:
        taxable = 0.0
    tax = 0.0
    lower = 0.0
    for upper, rate in ((11.0, 0.1), (44.0, 0.12), (95.0, 0.22), (182.0, 0.24), (231.0, 0.32), (1e9, 0.37)):
        top = upper * scale
        if taxable > top:
            tax += (top - lower) * rate
            lower = top
        else:
            tax += (taxable - lower) * rate
            break
    if gains > 0:
        if taxable + gains < 47.0 * scale:
            gain_rate = 0.0
        elif taxable + gains < 518.0 * scale:
            gain_rate = 0.15
        else:
            gain_rate = 0.2
        tax += gains * gain_rate
    else:
        offset = min(3.0, -gains)
        tax -= offset * 0.1
    credit = 0.0
    for _ in range(children):
        credit += 2.0
    limit = 200.0 * scale
    if wage > limit:
        credit -= 0.05 * (wage - limit)
        if credit < 0:
            credit = 0.0
    if credit > tax:
        refund = credit - tax
        if refund > 1.6 * children:
            refund = 1.6 * children
        return -refund
    least = 0.1 * (wage + gains - 80.0 * scale)
    return max(tax - credit, least)


PROGRAMS = (
    Program(mortgage, each(uniform(0.02, 0.06), uniform(200, 400), uniform(3, 6)), smooth=True),
    Program(implied_volatility, each(uniform(0.1, 0.3), uniform(0.8, 1.2), uniform(0.5, 2)), smooth=True),
    Program(income_tax, each(uniform(10, 300), uniform(-5, 50), integers(0, 4), integers(0, 2)), smooth=True),
)
