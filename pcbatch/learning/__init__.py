"""Learning a schedule from sample inputs (Chen, Fegade, Chen, Gibbons, Mowry: ED-Batch, ICML 2023).

task_graph.py    executions of blocks, which of them needs which other, and visits on the host
task_trace.py    the graph of a program of tasks on its samples, run for control alone; and of lanes
fixed.py         policies that are not learned, to compare with
q_learning.py    tables of states, learned by trying
learn.py         `learn_schedule`
"""
