# Completion of stepvalue for fish: stepvalue completion fish > ~/.config/fish/completions/stepvalue.fish

function __stepvalue_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
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
complete -c stepvalue -f -a '(__stepvalue_complete)'
