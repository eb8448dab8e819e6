! laggard.f90: what a Fortran program may tell laggard of itself, see laggard.h.
!
!     use laggard
!     call laggard_region_begin('solve')
!     call laggard_region_end('solve')
!     call laggard_wait_begin('spin', c_loc(flag))
!     call laggard_phase('time loop')
!     call laggard_pause()
!     call laggard_resume()
!
! Compile it with the program. Nothing has to be linked: the collector is looked up when a call is
! made first, and where it is not there (LD_PRELOAD is not set) calls do nothing. C libraries
! before glibc 2.34 need -ldl.
module laggard
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: laggard_region_begin, laggard_region_end, laggard_wait_begin
  public :: laggard_phase, laggard_pause, laggard_resume

  abstract interface
    subroutine begins(name, address) bind(c)
      import :: c_char, c_ptr
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: address
    end subroutine
    subroutine named(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
    subroutine switch(is_paused) bind(c)
      import :: c_int
      integer(c_int), value :: is_paused
    end subroutine
  end interface

  interface
    function find(handle, name) bind(c, name='dlsym') result(found)
      import :: c_char, c_ptr, c_funptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: found
    end function
  end interface

  ! What was found, or `nothing`: one word, so that threads may find it at the same time.
  type(c_funptr), save :: known_begin = c_null_funptr, known_end = c_null_funptr
  type(c_funptr), save :: known_phase = c_null_funptr, known_pause = c_null_funptr

contains

  ! Stands for the collector's functions where it is not there; never called.
  subroutine nothing() bind(c, name='')
  end subroutine

  ! The collector's function with this name; whether it is there.
  logical function has(name, known)
    character(len=*), intent(in) :: name
    type(c_funptr), intent(inout) :: known
    type(c_funptr) :: found
    if (.not. c_associated(known)) then
      ! The null pointer is RTLD_DEFAULT.
      found = find(c_null_ptr, 'laggard_collector_' // name // c_null_char)
      if (.not. c_associated(found)) found = c_funloc(nothing)
      known = found
    end if
    has = .not. c_associated(known, c_funloc(nothing))
  end function

  subroutine laggard_region_begin(name)
    character(len=*), intent(in) :: name
    call laggard_wait_begin(name, c_null_ptr)
  end subroutine

  subroutine laggard_wait_begin(name, address)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    procedure(begins), pointer :: function
    if (.not. has('region_begin', known_begin)) return
    call c_f_procpointer(known_begin, function)
    call function(trim(name) // c_null_char, address)
  end subroutine

  subroutine laggard_region_end(name)
    character(len=*), intent(in) :: name
    procedure(named), pointer :: function
    if (.not. has('region_end', known_end)) return
    call c_f_procpointer(known_end, function)
    call function(trim(name) // c_null_char)
  end subroutine

  subroutine laggard_phase(name)
    character(len=*), intent(in) :: name
    procedure(named), pointer :: function
    if (.not. has('phase', known_phase)) return
    call c_f_procpointer(known_phase, function)
    call function(trim(name) // c_null_char)
  end subroutine

  subroutine laggard_pause()
    call switch_to(1_c_int)
  end subroutine

  subroutine laggard_resume()
    call switch_to(0_c_int)
  end subroutine

  subroutine switch_to(is_paused)
    integer(c_int), intent(in) :: is_paused
    procedure(switch), pointer :: function
    if (.not. has('pause', known_pause)) return
    call c_f_procpointer(known_pause, function)
    call function(is_paused)
  end subroutine
end module laggard
