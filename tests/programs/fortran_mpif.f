C     Fixed-form Fortran 77 with mpif.h.
C
C     RUN np=2
C     EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5
C       operation=MPI_Recv function=exchange cause_rank=0 cause_line=@send
C     EXPECT wait_at_barrier at=@barrier ranks=1 severity=0.300
C       operation=MPI_Barrier cause_rank=0 cause_line=@barrier
C     METRIC late_sender 0.300
C     SILENT late_receiver
      PROGRAM FIXED
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER IERR, RANK, ROUND, TOTAL
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      TOTAL = 0
      DO 10 ROUND = 1, 5
        CALL EXCHANGE(RANK, ROUND, TOTAL)
   10 CONTINUE
      DO 20 ROUND = 1, 5
        IF (RANK .EQ. 0) CALL DELAY(60)
        CALL MPI_BARRIER(MPI_COMM_WORLD, IERR) ! MARK barrier
   20 CONTINUE
      WRITE (*, '(A,I2,A,I6)') 'rank', RANK, ' checksum', TOTAL
      CALL MPI_FINALIZE(IERR)
      END

C     Rank 0 sends after a delay, rank 1 receives at once.
      SUBROUTINE EXCHANGE(RANK, ROUND, TOTAL)
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER RANK, ROUND, TOTAL, IERR, VALUE, COMM
      INTEGER STATUS(MPI_STATUS_SIZE)
      COMM = MPI_COMM_WORLD
      CALL MPI_BARRIER(COMM, IERR)
      IF (RANK .EQ. 0) THEN
        CALL DELAY(60)
        VALUE = ROUND * 3
        CALL MPI_SEND(VALUE,1,MPI_INTEGER,1,4,COMM,IERR) ! MARK send
      ELSE
        VALUE = -1
        CALL MPI_RECV(VALUE,1,MPI_INTEGER,0,4,COMM,STATUS,IERR) ! MARK recv
        IF (VALUE .NE. ROUND * 3 .OR. STATUS(MPI_SOURCE) .NE. 0)
     &    CALL MPI_ABORT(COMM, 3, IERR)
        TOTAL = TOTAL + VALUE
      END IF
      END

      SUBROUTINE DELAY(MILLISECONDS)
      USE, INTRINSIC :: ISO_C_BINDING
      IMPLICIT NONE
      INTEGER MILLISECONDS
      INTEGER(C_INT) IGNORED
      CHARACTER(LEN=16) TEXT
      INTEGER STAT
      REAL SCALE
      INTERFACE
        INTEGER(C_INT) FUNCTION USLEEP(US) BIND(C, NAME='usleep')
          IMPORT C_INT
          INTEGER(C_INT), VALUE :: US
        END FUNCTION
      END INTERFACE
C     As in common.h.
      SCALE = 1
      CALL GET_ENVIRONMENT_VARIABLE('SCHEDULE_SCALE', TEXT, STATUS=STAT)
      IF (STAT .EQ. 0) READ (TEXT, *) SCALE
      IGNORED = USLEEP(INT(1000 * SCALE * MILLISECONDS, C_INT))
      END
