"""Jobs of a batch: their queue, their attempts and their execution."""
