"""Searches in lists and in ranges."""

from __future__ import annotations

import bisect
import math

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("searches", ROWS)


@row(([0, 5, 7, 10, 15], 15), ([0, 5, 7, 10, 15], 6), ([0, 5, 7, 10, 15], 0), new=False)
def binary_search(sorted_collection: list[int], item: int) -> int:
    left = 0
    right = len(sorted_collection) - 1
    while left <= right:
        midpoint = left + (right - left) // 2
        current_item = sorted_collection[midpoint]
        if current_item == item:
            return midpoint
        elif item < current_item:
            right = midpoint - 1
        else:
            left = midpoint + 1
    return -1


@row(([1, 3, 5, 7, 9, 11], 7), ([1, 3, 5, 7, 9, 11], 4), ([2], 2))
def binary_search_by_recursion(xs, target, low=0, high=None):
    if high is None:
        high = len(xs) - 1
    if low > high:
        return -1
    mid = (low + high) // 2
    if xs[mid] == target:
        return mid
    if xs[mid] > target:
        return binary_search_by_recursion(xs, target, low, mid - 1)
    return binary_search_by_recursion(xs, target, mid + 1, high)


@row(([0, 1, 3, 5, 8, 13], 5), ([0, 1, 3, 5, 8, 13], 4), ([4], 4))
def jump_search(arr, x):
    n = len(arr)
    step = int(math.floor(math.sqrt(n)))
    prev = 0
    while arr[min(step, n) - 1] < x:
        prev = step
        step += int(math.floor(math.sqrt(n)))
        if prev >= n:
            return -1
    while arr[prev] < x:
        prev = prev + 1
        if prev == min(step, n):
            return -1
    if arr[prev] == x:
        return prev
    return -1


@row(([10, 20, 30, 40], 30), ([10, 20, 30, 40], 25), new=False)
def interpolation_search(items, target):
    low, high = 0, len(items) - 1
    while low <= high and items[low] <= target <= items[high]:
        if items[low] == items[high]:
            return low if items[low] == target else -1
        place = low + (target - items[low]) * (high - low) // (items[high] - items[low])
        if items[place] == target:
            return place
        if items[place] < target:
            low = place + 1
        else:
            high = place - 1
    return -1


@row(([1, 2, 4, 4, 9], 4), ([1, 2, 4, 4, 9], 3), ([5], 6))
def bisect_by_library(xs, x):
    return bisect.bisect_left(xs, x), bisect.bisect_right(xs, x)


@row(([1, 4, 9, 5, 2],), ([3, 8],), ([7],))
def peak_by_bisection(xs):
    low, high = 0, len(xs) - 1
    while low < high:
        mid = low + (high - low) // 2
        if xs[mid] < xs[mid + 1]:
            low = mid + 1
        else:
            high = mid
    return low


@row(([4, 5, 6, 7, 0, 1, 2], 0), ([4, 5, 6, 7, 0, 1, 2], 3), ([1], 1))
def search_in_rotated(nums, target):
    left, right = 0, len(nums) - 1
    while left <= right:
        mid = (left + right) // 2
        if nums[mid] == target:
            return mid
        if nums[left] <= nums[mid]:
            if nums[left] <= target < nums[mid]:
                right = mid - 1
            else:
                left = mid + 1
        elif nums[mid] < target <= nums[right]:
            left = mid + 1
        else:
            right = mid - 1
    return -1


@row(([-1, 0, 1, 2, -1, -4],), ([0, 0, 0],), ([1, 2, 3],))
def three_sum(nums):
    nums.sort()
    found = []
    for i in range(len(nums) - 2):
        if i > 0 and nums[i] == nums[i - 1]:
            continue
        left, right = i + 1, len(nums) - 1
        while left < right:
            total = nums[i] + nums[left] + nums[right]
            if total < 0:
                left += 1
            elif total > 0:
                right -= 1
            else:
                found.append((nums[i], nums[left], nums[right]))
                while left < right and nums[left] == nums[left + 1]:
                    left += 1
                left += 1
                right -= 1
    return found
