/* An MPI application that does what a script says: lines "rank operation number...", rank -1 for
   all. Prints when each rank ends. make_applications.py runs it under smpirun. */
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
#define MOST 64
#define IS(name) (strcmp(operation, name) == 0)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, n, open = 0, whose, used, which;
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &n);
    char *a = calloc(1, 1 << 24), *b = calloc(1, 1 << 24), operation[32], line[1024];
    MPI_Request requests[MOST];
    FILE *script = fopen(argv[1], "r");
    while (fgets(line, sizeof line, script)) {
        int counts[MOST], own[MOST], none[MOST] = {0}, k = 0;
        long v[MOST];
        char *at = line;
        sscanf(at, "%d %31s%n", &whose, operation, &used);
        for (at += used; sscanf(at, "%ld%n", &v[k], &used) == 1; at += used)
            k++;
        if (whose != rank && whose != -1)
            continue;
        for (int i = 0; i < n; i++) {
            counts[i] = v[i];
            own[i] = v[rank];
        }
        MPI_Request *next = requests + open;
        open += operation[0] == 'i';
        if (IS("compute"))
            smpi_execute_flops(v[0]);
        else if (IS("isend"))
            MPI_Isend(a, v[0], MPI_CHAR, v[1], v[2], WORLD, next);
        else if (IS("irecv"))
            MPI_Irecv(b, v[0], MPI_CHAR, v[1], v[2], WORLD, next);
        else if (IS("ibarrier"))
            MPI_Ibarrier(WORLD, next);
        else if (IS("ibcast"))
            MPI_Ibcast(a, v[0], MPI_CHAR, v[1], WORLD, next);
        else if (IS("ireduce"))
            MPI_Ireduce(a, b, v[0], MPI_CHAR, MPI_MAX, v[1], WORLD, next);
        else if (IS("iallreduce"))
            MPI_Iallreduce(a, b, v[0], MPI_CHAR, MPI_MAX, WORLD, next);
        else if (IS("iscan"))
            MPI_Iscan(a, b, v[0], MPI_CHAR, MPI_MAX, WORLD, next);
        else if (IS("iexscan"))
            MPI_Iexscan(a, b, v[0], MPI_CHAR, MPI_MAX, WORLD, next);
        else if (IS("ireducescatter"))
            MPI_Ireduce_scatter(a, b, counts, MPI_CHAR, MPI_MAX, WORLD, next);
        else if (IS("ialltoall"))
            MPI_Ialltoall(a, v[0], MPI_CHAR, b, v[0], MPI_CHAR, WORLD, next);
        else if (IS("ialltoallv"))
            MPI_Ialltoallv(a, counts, none, MPI_CHAR, b, own, none, MPI_CHAR, WORLD, next);
        else if (IS("igather"))
            MPI_Igather(a, v[0], MPI_CHAR, b, v[0], MPI_CHAR, v[1], WORLD, next);
        else if (IS("igatherv"))
            MPI_Igatherv(a, own[0], MPI_CHAR, b, counts, none, MPI_CHAR, v[n], WORLD, next);
        else if (IS("iallgather"))
            MPI_Iallgather(a, v[0], MPI_CHAR, b, v[0], MPI_CHAR, WORLD, next);
        else if (IS("iallgatherv"))
            MPI_Iallgatherv(a, own[0], MPI_CHAR, b, counts, none, MPI_CHAR, WORLD, next);
        else if (IS("iscatter"))
            MPI_Iscatter(a, v[0], MPI_CHAR, b, v[0], MPI_CHAR, v[1], WORLD, next);
        else if (IS("iscatterv"))
            MPI_Iscatterv(a, counts, none, MPI_CHAR, b, own[0], MPI_CHAR, v[n], WORLD, next);
        else if (IS("waitany"))
            MPI_Waitany(open, requests, &which, MPI_STATUS_IGNORE);
        else if (IS("wait"))
            MPI_Wait(requests + v[0], MPI_STATUS_IGNORE);
        else if (IS("waitall")) {
            MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
            open = 0;
        }
    }
    printf("END %d %.15g\n", rank, MPI_Wtime());
    MPI_Finalize();
    return 0;
}
