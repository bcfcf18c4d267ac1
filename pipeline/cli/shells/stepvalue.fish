# Completion of stepvalue for fish: stepvalue completion fish | source, in ~/.config/fish/config.fish

function __stepvalue_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program $words[1]
    set -l before $words[2..-1]
    if __stepvalue_is_python
        # The stepvalue beside that python, or on the PATH. python itself is not started: the current folder may hold another
        # package named pipeline.
        set program stepvalue
        if string match -q '*/*' -- $words[1]
            set program (string replace -r '[^/]*$' stepvalue -- $words[1])
        end
        set before $words[4..-1]
    end
    for line in ($program __complete $before "$word" 2>/dev/null)
        if test "$line" = ":files"
            set -l key (string replace -r '=.*' '=' -- $word)
            for path in (__fish_complete_path (string replace -r '^[^=]*=' '' -- $word))
                printf '%s\n' $key$path
            end
        else
            printf '%s\n' $line
        end
    end
end

function __stepvalue_is_python
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test "$words[2] $words[3]" = "-m pipeline"
end

complete -c stepvalue -f -a '(__stepvalue_complete)'
# fish adds these to what it completes for python already.
complete -c python -n __stepvalue_is_python -f -a '(__stepvalue_complete)'
complete -c python3 -n __stepvalue_is_python -f -a '(__stepvalue_complete)'
