! Regions of a Fortran program, of which `solve` takes rank 1 60 ms longer in each of 5 rounds; in
! the barrier that follows the others wait, which is no time of a region. `output` takes all ranks
! the same. While the recording is paused rank 1 is late once more.
program imbalance
  use mpi
  use laggard
  implicit none
  integer :: rank, ranks, error, round
  double precision :: mine, origin

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  mine = MPI_Wtime()
  call MPI_Allreduce(mine, origin, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  origin = origin + 0.02d0
  call laggard_phase('time loop  ')
  do round = 0, 4
    call at(round, 0)
    call laggard_region_begin('step')
    call laggard_region_begin('solve') ! MARK solve
    call at(round, merge(80, 20, rank == 1))
    call laggard_region_end('solve')
    call MPI_Barrier(MPI_COMM_WORLD, error) ! MARK barrier
    call laggard_region_end('step')
    call laggard_region_begin('output')
    call at(round, 95)
    call laggard_region_end('output')
  end do
  call laggard_pause()
  call laggard_region_begin('paused')
  call at(5, merge(80, 20, rank == 1))
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call laggard_region_end('paused')
  call laggard_resume()
  call laggard_region_begin('resumed')
  call at(6, 50)
  call laggard_region_end('resumed')
  print '(a,i0,a,i0)', 'rank ', rank, ' of ', ranks
  call at(6, 60)
  call MPI_Finalize(error)

contains

  ! Waits until so many ms after the start of a round, all on one machine; longer ones as in common.h.
  subroutine at(round, ms)
    use iso_c_binding
    integer, intent(in) :: round, ms
    double precision :: left, scale
    character(len=16) :: text
    integer :: status
    interface
      integer(c_int) function usleep(us) bind(c)
        import :: c_int
        integer(c_int), value :: us
      end function
    end interface
    scale = 1
    call get_environment_variable('SCHEDULE_SCALE', text, status=status)
    if (status == 0) read (text, *) scale
    do
      left = origin + scale * (0.1d0 * round + 1d-3 * ms) - MPI_Wtime()
      if (left <= 0) exit
      if (usleep(int(left * 1d6, c_int)) /= 0) cycle
    end do
  end subroutine
end program
