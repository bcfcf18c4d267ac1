# Completion of stepvalue for bash: eval "$(stepvalue completion bash)"

# $1 is the program that knows the candidates. The other arguments are the parts of the line that stand for it.
_stepvalue_of() {
    # The words up to the cursor: COMP_WORDS is cut at = and : too, as COMP_WORDBREAKS says.
    local line=${COMP_LINE:0:COMP_POINT} program=$1 candidate word cut
    local -a words
    for word in "${@:2}"; do
        line=${line#*"$word"}
    done
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

_stepvalue() {
    _stepvalue_of "${COMP_WORDS[0]}" "${COMP_WORDS[0]}"
}
complete -F _stepvalue stepvalue

# `python -m pipeline ...` is completed by the stepvalue beside that python, or on the PATH. python itself is not started: the
# current folder may hold another package named pipeline. All other command lines of python are completed as before.
_stepvalue_python() {
    local python=${COMP_WORDS[0]} program
    if [[ $COMP_CWORD -ge 3 && ${COMP_WORDS[1]} == -m && ${COMP_WORDS[2]} == pipeline ]]; then
        program=stepvalue
        [[ $python == */* ]] && program=${python%/*}/stepvalue
        _stepvalue_of "$program" "$python" pipeline
    elif [[ -n $_stepvalue_python_before ]]; then
        "$_stepvalue_python_before" "$@"
    fi
}

_stepvalue_add_python() {
    # bash-completion loads the completion of a command when it is first needed. Loaded now, it is not lost.
    if declare -F _comp_load > /dev/null; then
        _comp_load python > /dev/null 2>&1
    elif declare -F __load_completion > /dev/null; then
        __load_completion python > /dev/null 2>&1
    fi
    local before
    before=$(complete -p python 2> /dev/null)
    if [[ -z $before ]]; then
        complete -o bashdefault -o default -F _stepvalue_python python python3
    elif [[ $before =~ \ -F\ ([A-Za-z_][A-Za-z_0-9]*)\  && ${BASH_REMATCH[1]} != _stepvalue_python ]]; then
        _stepvalue_python_before=${BASH_REMATCH[1]}
        before=${before/ -F $_stepvalue_python_before / -F _stepvalue_python }
        eval "${before% python} python python3"
    fi
}
_stepvalue_add_python
unset -f _stepvalue_add_python
