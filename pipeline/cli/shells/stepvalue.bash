# Completion of stepvalue for bash: eval "$(stepvalue completion bash)"

_stepvalue() {
    # The words up to the cursor: COMP_WORDS is cut at = and : too, as COMP_WORDBREAKS says.
    local line=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[0]} candidate word cut
    local -a words
    line=${line#*"$program"}
    read -r -a words <<< "$line"
    if [[ ${#words[@]} -eq 0 || $line == *[[:space:]] ]]; then
        words+=('')
    fi
    word=${words[${#words[@]} - 1]}

    # Of the word under the cursor bash replaces only what follows the last character that it cuts words at.
    cut=
    if [[ $COMP_WORDBREAKS == *=* && $word == *=* ]]; then
        cut=${word%"${word##*=}"}
    fi
    if [[ $COMP_WORDBREAKS == *:* && $word == *:* ]]; then
        candidate=${word%"${word##*:}"}
        [[ ${#candidate} -gt ${#cut} ]] && cut=$candidate
    fi

    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        if [[ $candidate == :files ]]; then
            compopt -o filenames
            while IFS= read -r candidate; do
                candidate=${word%%=*}=$candidate
                COMPREPLY+=("${candidate#"$cut"}")
            done < <(compgen -f -- "${word#*=}")
        else
            [[ $candidate == *[=.] ]] && compopt -o nospace
            COMPREPLY+=("${candidate#"$cut"}")
        fi
    done < <("${program/#\~\//$HOME/}" __complete "${words[@]}" 2> /dev/null)
}
complete -F _stepvalue stepvalue
