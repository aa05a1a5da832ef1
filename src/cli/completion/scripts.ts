// Each script runs the command that the user typed with `__complete` and the words before the cursor, and shows the output:
// a value and a description per line, or `:files` for file names.

/**
 * Bash splits words at `=`, `:` and `@` too. The script joins them again, and removes from each candidate what bash already
 * has on the line. It works without the bash-completion package, and with the bash 3.2 of macOS.
 */
export const bashScript = `# Bash completion for drover. In ~/.bashrc: eval "$(drover completions bash)"
_drover() {
  local line=\${COMP_LINE:0:COMP_POINT} rest blanks word fragment="" words=() i
  rest=$line
  for ((i = 0; i <= COMP_CWORD; i++)); do
    blanks=\${rest%%[![:space:]]*}
    rest=\${rest#"$blanks"}
    word=\${COMP_WORDS[i]}
    if ((i == COMP_CWORD)); then word=$rest; fi
    rest=\${rest#"$word"}
    if ((i == 0)) || [[ -n $blanks ]]; then
      words+=("$word")
    else
      words[\${#words[@]}-1]+=$word
    fi
    fragment=$word
  done
  case $fragment in "=" | ":" | "@") fragment="" ;; esac
  local current=\${words[\${#words[@]}-1]} value about command=\${words[0]/#\\~/$HOME}
  local joined=\${current%"$fragment"}
  COMPREPLY=()
  while IFS=$'\\t' read -r value about; do
    if [[ $value == ":files" ]]; then
      # Before bash 4 there is no compopt.
      compopt -o default 2>/dev/null || while read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$fragment")
      return
    fi
    value=\${value#"$joined"}
    # printf would also quote a comma, and the next completion of the same word would quote it again.
    case $value in *[!A-Za-z0-9_.,:=/@%+-]*) value=$(printf '%q' "$value") ;; esac
    COMPREPLY+=("$value")
  done < <("$command" __complete "\${words[@]:1}" 2>/dev/null)
}
complete -F _drover drover
`;

export const zshScript = `#compdef drover
# Zsh completion for drover. In ~/.zshrc, after compinit: eval "$(drover completions zsh)"
_drover() {
  local line value about
  local -a lines candidates
  lines=("\${(@f)$("\${(Q)words[1]/#\\~/$HOME}" __complete "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    value=\${line%%$'\\t'*}
    if [[ $value == ":files" ]]; then
      _files
      return
    fi
    about=\${line#*$'\\t'}
    [[ $about == "$line" ]] && about=""
    candidates+=("\${value//:/\\\\:}\${about:+:$about}")
  done
  (( \${#candidates} )) && _describe -V -t drover drover candidates
}
compdef _drover drover
`;

export const fishScript = `# Fish completion for drover: drover completions fish > ~/.config/fish/completions/drover.fish
function __drover_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path "$current"
    else if test (count $lines) -gt 0
        printf '%s\\n' $lines
    end
end
complete -c drover -f -k -a '(__drover_complete)'
`;
