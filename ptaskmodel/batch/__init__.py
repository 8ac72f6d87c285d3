"""Jobs, queues, policies, metrics: batch scheduling on top of the engine.

`ptaskmodel.batch.run.run_batch` simulates a workload on a platform; `simulator.BatchSimulation` is
the loop below it; `state` has what a policy sees and answers; `kit.check_policy` tries a policy.
"""
