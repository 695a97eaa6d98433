/* Ranks: 2. Messages of every length around the powers of two, to and fro. */
#include "check.h"

static void program(void) {
    static unsigned char values[70000];
    int wrong = 0, total = 0;
    for (int power = 0; power <= 16; power++) {
        for (int length = (1 << power) - 2; length <= (1 << power) + 2; length++) {
            if (length < 0) continue;
            MPI_Status status;
            int count;
            if (rank == 0) {
                for (int i = 0; i < length; i++) values[i] = (unsigned char)(i + length);
                MPI_Send(values, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            } else {
                values[length] = 77;
                MPI_Recv(values, sizeof values, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &count);
                for (int i = 0; i < length; i++) wrong += values[i] != (unsigned char)(i + length);
                wrong += values[length] != 77 || count != length;
            }
            total++;
        }
    }
    say("wrong %d of %d\n", wrong, total);
}
