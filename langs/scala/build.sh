# Compiles the program, and writes down for java where Scala's library is: lib/ beside the compiler's bin/.
# Arguments: the folder of the source, the folder that it is built into.
set -eu

PATH="$PATH:$HOME/.local/bin"
compiler=$(command -v scalac)
library=$(dirname "$(dirname "$(readlink -f "$compiler")")")/lib
if ! ls "$library"/scala3-library*.jar > /dev/null; then
    echo "no library of Scala 3 beside $compiler" >&2
    exit 1
fi
"$compiler" -d "$2/program.jar" "$1/Program.scala"
printf -- '-cp "%s/program.jar:%s/*"\nprogram\n' "$2" "$library" > "$2/arguments"
