#compdef kernelgen
# Completion of kernelgen for zsh, printed by 'kernelgen completions zsh'.

_kernelgen_ops() {
    local file
    local -a ops
    for file in ${(M)words:#*.kg}; do
        [[ -r $file ]] &&
            ops+=(${(f)"$(sed -n 's/^ *op  *\([A-Za-z_0-9]*\).*/\1/p' $file)"})
    done
    compadd -a ops
}

_kernelgen_array() {
    compset -P '*=' && _files -g $1
}

_kernelgen() {
    local -a commands=(
@SUMMARIES@
    )
    if ((CURRENT == 2)); then
        _describe command commands
        _arguments '--help[the commands]' '--version[the version]'
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
@TABLE@
    esac
}

if [[ $funcstack[1] == _kernelgen ]]; then
    _kernelgen "$@"
else
    compdef _kernelgen kernelgen
fi
