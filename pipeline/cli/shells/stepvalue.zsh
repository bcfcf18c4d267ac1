#compdef stepvalue
# Completion of stepvalue for zsh: eval "$(stepvalue completion zsh)" after compinit, or a file _stepvalue in $fpath.

_stepvalue() {
    local line candidate
    local -a before names texts open_names open_texts
    before=("${(@Q)words[2,CURRENT-1]}")
    for line in "${(@f)$("${(Q)words[1]/#\~\//$HOME/}" __complete "${before[@]}" "${(Q)PREFIX}" 2> /dev/null)}"; do
        candidate=${line%%$'\t'*}
        [[ -n $candidate ]] || continue
        if [[ $candidate == :files ]]; then
            compset -P '*='
            _files
            return
        elif [[ $candidate == *[=.] ]]; then
            open_names+=("$candidate")
            open_texts+=("${line/$'\t'/  -- }")
        else
            names+=("$candidate")
            texts+=("${line/$'\t'/  -- }")
        fi
    done
    (( $#names )) && compadd -l -d texts -a names
    (( $#open_names )) && compadd -l -S '' -d open_texts -a open_names
    return 0
}

if [[ $funcstack[1] == _stepvalue ]]; then
    _stepvalue "$@"
else
    compdef _stepvalue stepvalue

    # `python -m pipeline ...` is completed by the stepvalue beside that python, or on the PATH. python itself is not started:
    # the current folder may hold another package named pipeline. All other command lines of python are completed as before.
    _stepvalue_python() {
        if (( CURRENT > 3 )) && [[ ${words[2]} == -m && ${words[3]} == pipeline ]]; then
            local program=stepvalue
            [[ ${words[1]} == */* ]] && program=${words[1]:h}/stepvalue
            words=("$program" "${(@)words[4,-1]}")
            (( CURRENT -= 2 ))
            _stepvalue
        else
            ${=_stepvalue_python_before}
        fi
    }
    if [[ ${_comps[python]} != _stepvalue_python ]]; then
        typeset -g _stepvalue_python_before=${_comps[python]:-_default}
        compdef _stepvalue_python python python3
    fi
fi
