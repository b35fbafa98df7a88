# Compiles the program, and copies Scala's library next to it, so that java can run it. The library
# is in lib/, next to the compiler's bin/. The arguments are the folder of the source and the folder
# of the build.
set -eu

PATH="$PATH:${HOME:-}/.local/bin"
compiler=$(command -v scalac)
library=$(dirname "$(dirname "$(readlink -f "$compiler")")")/lib
if ! cp "$library"/scala-library*.jar "$library"/scala3-library*.jar "$2"; then
    echo "no library of Scala 3 beside $compiler" >&2
    exit 1
fi
"$compiler" -d "$2/program.jar" "$1/Program.scala"
