# Completion of kernelgen for bash, printed by 'kernelgen completions bash'.

# Sets, for a command and an option, all options, what completes each word, and what completes the
# option's value ('?': nothing does; empty: it has none).
_kernelgen_table() {
    options='' places=() value=''
    case $1 in
@TABLE@
    esac
}

_kernelgen_ops() {
    local word
    for word in "${typed[@]}"; do
        [[ $word == *.kg && -r $word ]] &&
            sed -n 's/^ *op  *\([A-Za-z_0-9]*\).*/\1/p' "$word"
    done
}

# Files that match a pattern, and folders on the way to them.
_kernelgen_files() {
    local path
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        [[ -d $path || ${path##*/} == $1 ]] && COMPREPLY+=("$path")
    done < <(compgen -f -- "$current" | sort -u)
}

_kernelgen_complete() {
    local item
    local -a items
    read -ra items <<<"$1"
    for item in "${items[@]}"; do
        case $item in
        '?') ;;
        @ops) _kernelgen_complete "$(_kernelgen_ops | tr '\n' ' ')" ;;
        @commands) _kernelgen_complete "@COMMANDS@" ;;
        =*) [[ $current == *=* ]] && current=${current#*=} && _kernelgen_files "${item#=}" ;;
        /) _kernelgen_files / ;;
        \**) _kernelgen_files "$item" ;;
        *) [[ $item == "$current"* ]] && COMPREPLY+=("$item") ;;
        esac
    done
}

_kernelgen() {
    local line=${COMP_LINE:0:COMP_POINT} current previous options places value start i
    local -a typed
    local place=0
    read -ra typed <<<"$line"
    [[ $line == *[[:space:]] ]] && typed+=('')
    local last=$((${#typed[@]} - 1))
    current=${typed[last]} previous=${typed[last - 1]} COMPREPLY=()
    if ((last < 2)); then
        _kernelgen_complete "@COMMANDS@ --help --version"
        return
    fi
    for ((i = 2; i < last; i++)); do
        _kernelgen_table "${typed[1]}" "${typed[i]}"
        if [[ ${typed[i]} != -?* ]]; then
            place=$((place + 1))
        elif [[ $value ]]; then
            i=$((i + 1))
        fi
    done
    [[ $current == --*=* ]] && previous=${current%%=*} current=${current#*=}
    _kernelgen_table "${typed[1]}" "$previous"
    if [[ $value ]]; then
        _kernelgen_complete "$value"
    elif [[ $current == -* ]]; then
        _kernelgen_complete "$options"
    elif ((place < ${#places[@]})); then
        _kernelgen_complete "${places[place]}"
    fi
    # Readline replaces only what follows the last = or :.
    start=${current%"${current##*[=:]}"}
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$start"}; done
}
complete -F _kernelgen kernelgen
