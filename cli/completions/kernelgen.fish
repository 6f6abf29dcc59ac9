# Completion of kernelgen for fish, printed by 'kernelgen completions fish'.

# Is COMMAND completed, at its word of this NUMBER? Values of options are no words.
function __kernelgen_is -a number command
    set -l typed (commandline -opc)
    test (count $typed) -ge 2; and test $typed[2] = $command; or return 1
    test $number -eq 0; and return
    set -l words 1
    set -l skip 0
    for word in $typed[3..-1]
        if test $skip -eq 1
            set skip 0
        else if string match -q -- '-?*' $word
            contains -- $word (__kernelgen_valued); and set skip 1
        else
            set words (math $words + 1)
        end
    end
    test $words -eq $number
end

function __kernelgen_valued
    string split ' ' -- '@VALUED@'
end

function __kernelgen_ops
    for word in (commandline -opc)
        string match -q '*.kg' -- $word; and test -r $word
        and string match -rg '^ *op +(\w+)' <$word
    end
end

# Files with one of the suffixes, and folders on the way to them; a first argument, `=`, asks for
# NAME=FILE.
function __kernelgen_files
    set -l token (string replace -r '^--[a-z-]+=' '' -- (commandline -ct))
    set -l name ''
    if test "$argv[1]" = '='
        set name (string match -r '^[^=]*=' -- $token); or return
        set token (string replace -r '^[^=]*=' '' -- $token)
        set -e argv[1]
    end
    set -l paths $token*/
    set -l files $token*
    for suffix in $argv
        set -a paths (string match -- "*$suffix" $files)
    end
    test (count $paths) -gt 0; and printf '%s\n' $name$paths
end

complete -c kernelgen -f
complete -c kernelgen -n __fish_use_subcommand -l help -d 'the commands'
complete -c kernelgen -n __fish_use_subcommand -l version -d 'the version'
@TABLE@
