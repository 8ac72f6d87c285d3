"""What becomes of jobs: their queue, their attempts, their execution."""
