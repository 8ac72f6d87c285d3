/* The programs of ptaskmodel.apps.programs, for SMPI: NAME ITERATIONS FLOPS BYTES. */
#include <math.h>
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, iterations, bytes;
static double flops;
static char *out, *in;

static void send(int to) { MPI_Send(out, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD); }

static void receive(int from)
{
    MPI_Recv(in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void all_to_all(void)
{
    for (int k = 0; k < iterations; k++) {
        smpi_execute_flops(flops);
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allreduce(out, in, 16, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    }
}

static void stencil(void)
{
    int rows = (int)sqrt(ranks);
    while (ranks % rows)
        rows--;
    int columns = ranks / rows, row = rank / columns, column = rank % columns, count = 0, near[4];
    if (row > 0)
        near[count++] = rank - columns;
    if (row + 1 < rows)
        near[count++] = rank + columns;
    if (column > 0)
        near[count++] = rank - 1;
    if (column + 1 < columns)
        near[count++] = rank + 1;
    for (int k = 0; k < iterations; k++) {
        MPI_Request requests[8];
        for (int i = 0; i < count; i++)
            MPI_Irecv(in, bytes, MPI_BYTE, near[i], 0, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < count; i++)
            MPI_Isend(out, bytes, MPI_BYTE, near[i], 0, MPI_COMM_WORLD, &requests[count + i]);
        MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
        smpi_execute_flops(flops);
    }
}

static void pipeline(void)
{
    for (int k = 0; k < iterations; k++) {
        if (rank > 0)
            receive(rank - 1);
        smpi_execute_flops(flops);
        if (rank + 1 < ranks)
            send(rank + 1);
    }
}

static void master_worker(void)
{
    for (int worker = 1; rank == 0 && worker < ranks; worker++)
        send(worker);
    for (int k = 0; k < iterations; k++) {
        if (rank > 0) {
            receive(0);
            smpi_execute_flops(flops);
            send(0);
            continue;
        }
        for (int worker = 1; worker < ranks; worker++) {
            receive(worker);
            if (k + 1 < iterations)
                send(worker);
        }
    }
}

/* To the q ranks that are `first`, `first + stride` ..., from the root-th, down a binary tree. */
static void broadcast(int q, int own, int root, int first, int stride)
{
    int place = (own - root + q) % q;
    if (place > 0)
        receive(first + ((place - 1) / 2 + root) % q * stride);
    for (int child = 2 * place + 1; child <= 2 * place + 2 && child < q; child++)
        send(first + (child + root) % q * stride);
}

static void pdgemm(void)
{
    int q = (int)sqrt(ranks);
    for (int k = 0; k < iterations; k++) {
        broadcast(q, rank % q, k % q, rank / q * q, 1);
        broadcast(q, rank / q, k % q, rank % q, q);
        smpi_execute_flops(flops);
    }
}

int main(int argc, char **argv)
{
    const char *names[] = {"all-to-all", "stencil", "pipeline", "master-worker", "pdgemm"};
    void (*programs[])(void) = {all_to_all, stencil, pipeline, master_worker, pdgemm};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    iterations = atoi(argv[2]);
    flops = atof(argv[3]);
    bytes = atoi(argv[4]);
    out = calloc(ranks, bytes);
    in = calloc(ranks, bytes);
    for (int i = 0; i < 5; i++)
        if (!strcmp(argv[1], names[i]))
            programs[i]();
    printf("%d %.15g\n", rank, MPI_Wtime());
    MPI_Finalize();
    return 0;
}
