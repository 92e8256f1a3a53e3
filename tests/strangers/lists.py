"""Lists that lanes sort, grow, cut and merge."""

from __future__ import annotations

import heapq

from tests.strangers.rows import FIVES, LISTS, Row, table

ROWS: list[Row] = []
row = table("lists", ROWS)


@row(*LISTS)
def bubble_sort(collection):
    length = len(collection)
    for i in reversed(range(length)):
        swapped = False
        for j in range(i):
            if collection[j] > collection[j + 1]:
                swapped = True
                collection[j], collection[j + 1] = collection[j + 1], collection[j]
        if not swapped:
            break
    return collection


@row(*LISTS)
def insertion_sort(collection):
    for insert_index, insert_value in enumerate(collection[1:]):
        temp_index = insert_index
        while insert_index >= 0 and insert_value < collection[insert_index]:
            collection[insert_index + 1] = collection[insert_index]
            insert_index -= 1
        if insert_index != temp_index:
            collection[insert_index + 1] = insert_value
    return collection


@row(*LISTS)
def selection_sort(collection: list[int]) -> list[int]:
    length = len(collection)
    for i in range(length - 1):
        min_index = i
        for k in range(i + 1, length):
            if collection[k] < collection[min_index]:
                min_index = k
        if min_index != i:
            collection[i], collection[min_index] = collection[min_index], collection[i]
    return collection


@row(*LISTS)
def quick_sort(collection: list) -> list:
    if len(collection) < 2:
        return collection
    pivot = collection[0]
    lesser = [item for item in collection[1:] if item <= pivot]
    greater = [item for item in collection[1:] if item > pivot]
    return [*quick_sort(lesser), pivot, *quick_sort(greater)]


@row(*LISTS)
def quick_sort_in_three_parts(arr):
    if len(arr) <= 1:
        return arr
    pivot = arr[len(arr) // 2]
    left = [x for x in arr if x < pivot]
    middle = [x for x in arr if x == pivot]
    right = [x for x in arr if x > pivot]
    return quick_sort_in_three_parts(left) + middle + quick_sort_in_three_parts(right)


@row(*LISTS)
def merge_sort(collection: list) -> list:
    def merge(left: list, right: list) -> list:
        result = []
        while left and right:
            result.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
        result.extend(left)
        result.extend(right)
        return result

    if len(collection) <= 1:
        return collection
    mid_index = len(collection) // 2
    return merge(merge_sort(collection[:mid_index]), merge_sort(collection[mid_index:]))


@row(*LISTS)
def shell_sort(collection):
    gaps = [701, 301, 132, 57, 23, 10, 4, 1]
    for gap in gaps:
        for i in range(gap, len(collection)):
            insert_value = collection[i]
            j = i
            while j >= gap and collection[j - gap] > insert_value:
                collection[j] = collection[j - gap]
                j -= gap
            if j != i:
                collection[j] = insert_value
    return collection


@row(*LISTS)
def counting_sort(collection):
    if collection == []:
        return []
    coll_len = len(collection)
    coll_max = max(collection)
    coll_min = min(collection)
    counting_arr_length = coll_max + 1 - coll_min
    counting_arr = [0] * counting_arr_length
    for number in collection:
        counting_arr[number - coll_min] += 1
    for i in range(1, counting_arr_length):
        counting_arr[i] = counting_arr[i] + counting_arr[i - 1]
    ordered = [0] * coll_len
    for i in reversed(range(coll_len)):
        ordered[counting_arr[collection[i] - coll_min] - 1] = collection[i]
        counting_arr[collection[i] - coll_min] -= 1
    return ordered


def heapify(unsorted, index, heap_size):
    largest = index
    left_index = 2 * index + 1
    right_index = 2 * index + 2
    if left_index < heap_size and unsorted[left_index] > unsorted[largest]:
        largest = left_index
    if right_index < heap_size and unsorted[right_index] > unsorted[largest]:
        largest = right_index
    if largest != index:
        unsorted[largest], unsorted[index] = (unsorted[index], unsorted[largest])
        heapify(unsorted, largest, heap_size)


@row(*LISTS)
def heap_sort(unsorted):
    n = len(unsorted)
    for i in range(n // 2 - 1, -1, -1):
        heapify(unsorted, i, n)
    for i in range(n - 1, 0, -1):
        unsorted[0], unsorted[i] = unsorted[i], unsorted[0]
        heapify(unsorted, 0, i)
    return unsorted


@row(*LISTS)
def median(nums):
    sorted_list = sorted(nums)
    length = len(sorted_list)
    mid_index = length >> 1
    if length % 2 == 0:
        return (sorted_list[mid_index] + sorted_list[mid_index - 1]) / 2
    return float(sorted_list[mid_index])


@row(*LISTS)
def reverse_in_place(arr):
    i, j = 0, len(arr) - 1
    while i < j:
        arr[i], arr[j] = arr[j], arr[i]
        i += 1
        j -= 1
    return arr


@row(*FIVES, new=False)
def count_inversions(arr):
    count = 0
    for i in range(len(arr)):
        for j in range(i + 1, len(arr)):
            if arr[i] > arr[j]:
                count += 1
    return count


@row(([1, 3, 5], [2, 4, 6]), ([1, 9, 10], [0, 0, 12]))
def merge_two(a, b):
    i = j = 0
    out = []
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return out + a[i:] + b[j:]


@row(([4, 5, 2, 25],), ([13, 7, 6, 12],))
def next_greater(arr):
    result = [-1] * len(arr)
    stack = []
    for i in range(len(arr) - 1, -1, -1):
        while stack and stack[-1] <= arr[i]:
            stack.pop()
        if stack:
            result[i] = stack[-1]
        stack.append(arr[i])
    return result


@row(*FIVES, new=False)
def peak_of_three(lst):
    m = len(lst) // 2
    three = lst[m - 1 : m + 2]
    if three[1] > three[0] and three[1] > three[2]:
        return three[1]
    return three[0]


@row(([1, 2, 3, 4],), ([2, 0, 1, 3],))
def average(nums):
    if not nums:
        raise ValueError("List is empty")
    return sum(nums) / len(nums)


@row(([3, 1, 2],), ([9, 8, 8],))
def kth_smallest_heap(xs):
    heap = []
    for x in xs:
        heapq.heappush(heap, x)
    heapq.heappop(heap)
    return heapq.heappop(heap)


@row(([1, 2, 3, 4, 5], 2), ([9, 8, 7], 4), ([1], 0))
def rotate_by_slices(nums, k):
    k %= len(nums)
    return nums[-k:] + nums[:-k]


@row(([0, 1, 0, 3, 12],), ([0, 0, 1],), ([4, 5],))
def zeros_to_the_end(nums):
    last = 0
    for i in range(len(nums)):
        if nums[i] != 0:
            nums[last], nums[i] = nums[i], nums[last]
            last += 1
    return nums


@row(([1, 1, 2, 2, 3],), ([5],), ([0, 0, 0],))
def without_repeats(nums):
    i = 0
    while i < len(nums) - 1:
        if nums[i] == nums[i + 1]:
            del nums[i]
        else:
            i += 1
    return nums


@row(([4, 2, 9, 2], 2), ([1, 1], 1), ([3], 5))
def remove_all(nums, value):
    while value in nums:
        nums.remove(value)
    return len(nums), nums


@row(([1, 2, 3, 4],), ([2, 5, 1],), ([3],))
def product_except_self(nums):
    n = len(nums)
    answer = [1] * n
    left = 1
    for i in range(n):
        answer[i] = left
        left *= nums[i]
    right = 1
    for i in reversed(range(n)):
        answer[i] *= right
        right *= nums[i]
    return answer


@row(([3, 5, 2, 9],), ([1],), ([7, 7, 1],))
def second_largest(nums):
    ordered = sorted(set(nums), reverse=True)
    return ordered[1] if len(ordered) > 1 else -1


@row(([1, 2, 3, 4, 5, 6, 7], 3), ([1, 2], 5))
def chunk_sums(values, size):
    return [sum(values[i : i + size]) for i in range(0, len(values), size)]


@row(([5, 1, 4, 2, 8],), ([2, 1],), ([1, 2, 3],))
def cocktail_sort(items):
    start, end, swapped = 0, len(items) - 1, True
    while swapped:
        swapped = False
        for i in range(start, end):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
                swapped = True
        if not swapped:
            break
        swapped = False
        end -= 1
        for i in range(end - 1, start - 1, -1):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
                swapped = True
        start += 1
    return items


@row(([170, 45, 75, 90, 2],), ([3, 30, 300],), ([5],))
def radix_sort(numbers):
    place = 1
    while max(numbers) // place > 0:
        buckets = [[] for _ in range(10)]
        for number in numbers:
            buckets[(number // place) % 10].append(number)
        numbers = [x for bucket in buckets for x in bucket]
        place *= 10
    return numbers


@row(([5, 3, 8, 1], 2), ([1, 2, 3], 0))
def quick_select(nums, k):
    pivot = nums[len(nums) // 2]
    low = [x for x in nums if x < pivot]
    same = [x for x in nums if x == pivot]
    high = [x for x in nums if x > pivot]
    if k < len(low):
        return quick_select(low, k)
    if k < len(low) + len(same):
        return pivot
    return quick_select(high, k - len(low) - len(same))


@row(([3, 9, 2], [10, 1, 7]), ([5], [6]))
def insert_everywhere(xs, ys):
    out = list(xs)
    for i, y in enumerate(ys):
        out.insert(i, y)
    out.extend(xs)
    out.reverse()
    return out, out.index(xs[0]), out.count(ys[0])
