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

contains

  ! The collector's function with this name.
  function collector(name) result(found)
    character(len=*), intent(in) :: name
    type(c_funptr) :: found
    ! The null pointer is RTLD_DEFAULT.
    found = find(c_null_ptr, 'laggard_collector_' // name // c_null_char)
  end function

  subroutine laggard_region_begin(name)
    character(len=*), intent(in) :: name
    call laggard_wait_begin(name, c_null_ptr)
  end subroutine

  subroutine laggard_wait_begin(name, address)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    type(c_funptr), save :: known
    logical, save :: looked = .false.
    procedure(begins), pointer :: function
    if (.not. looked) then
      known = collector('region_begin')
      looked = .true.
    end if
    if (.not. c_associated(known)) return
    call c_f_procpointer(known, function)
    call function(trim(name) // c_null_char, address)
  end subroutine

  subroutine laggard_region_end(name)
    character(len=*), intent(in) :: name
    type(c_funptr), save :: known
    logical, save :: looked = .false.
    procedure(named), pointer :: function
    if (.not. looked) then
      known = collector('region_end')
      looked = .true.
    end if
    if (.not. c_associated(known)) return
    call c_f_procpointer(known, function)
    call function(trim(name) // c_null_char)
  end subroutine

  subroutine laggard_phase(name)
    character(len=*), intent(in) :: name
    type(c_funptr) :: known
    procedure(named), pointer :: function
    known = collector('phase')
    if (.not. c_associated(known)) return
    call c_f_procpointer(known, function)
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
    type(c_funptr) :: known
    procedure(switch), pointer :: function
    known = collector('pause')
    if (.not. c_associated(known)) return
    call c_f_procpointer(known, function)
    call function(is_paused)
  end subroutine
end module laggard
