"""`python -m ptaskmodel.kernels`: build the kernels."""

from ptaskmodel.kernels.building import main

if __name__ == "__main__":
    main()
