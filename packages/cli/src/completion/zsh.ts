/** The completion script for zsh.
 *  Invariant: descriptions are data; a colon in a name is escaped, as `_describe` wants it.
 *  Elsewhere: what can be completed (table.ts). */

import { argumentsText, quoted, valuesText } from "./shell-text.ts";
import type { CompletionRow } from "./table.ts";

export const zshScript = (rows: readonly CompletionRow[]): string => `#compdef prefork
# Completion of prefork for zsh. To install it for you:
#   mkdir -p ~/.zfunc && prefork completion zsh > ~/.zfunc/_prefork
# and in ~/.zshrc, before compinit: fpath=(~/.zfunc $fpath)
# To use it in this shell only:
#   source <(prefork completion zsh)

# Sets what can follow the command $1: its commands, options, options with a value, and arguments.
_prefork_row() {
  commands=() options=() values='' arguments=''
  case $1 in
${rows.map(caseOf).join("\n")}
    (*) return 1 ;;
  esac
}

# Offers what prefork itself knows: sessions, tasks, settings.
_prefork_names() {
  local name title
  local -a found
  while IFS=$'\\t' read -r name title; do
    if [[ -n $name ]]; then found+=("\${name//:/\\\\:}:$title"); fi
  done < <("$program" __complete "$@" 2> /dev/null)
  _describe -V "$1" found
}

# Completes a value of the kind $1.
_prefork_value() {
  local -a found
  case $1 in
    ('='*)
      found=("\${(@s:|:)1#=}")
      _describe value found
      ;;
    (file) _files ;;
    (folder) _files -/ ;;
    (session|task|key) _prefork_names "$1" ;;
    (value) _prefork_names value "$last" ;;
  esac
}

_prefork() {
  local program=\${(Q)words[1]/#\\~\\//$HOME/} path_= values arguments kind expected= last= literal= word
  local -a commands options kinds
  local -i position=0
  _prefork_row ''
  for word in "\${(@Q)words[2,CURRENT-1]}"; do
    if [[ -n $expected && $word != -* ]]; then
      expected=
      continue
    fi
    expected=
    if [[ -z $literal && $word == -- ]]; then
      literal=1
    elif [[ -z $literal && $word == -* ]]; then
      if [[ " $values " == *" $word:"* ]]; then expected=$word; fi
    elif (( position == 0 )) && [[ -n \${(M)commands:#$word:*} ]]; then
      path_=\${path_:+$path_ }$word
      _prefork_row "$path_"
    else
      position+=1
      last=$word
    fi
  done
  local current=\${(Q)words[CURRENT]}
  if [[ -z $literal && $current == -*=* ]]; then
    expected=\${current%%=*}
    compset -P '*='
  fi
  if [[ -n $expected ]]; then
    kind=" $values"
    kind=\${kind#*" $expected:"}
    _prefork_value "\${kind%% *}"
    return
  fi
  if [[ -z $literal && $current == -* ]]; then
    _describe -o option options
    return
  fi
  if (( position == 0 && \${#commands} > 0 )); then _describe command commands; fi
  kinds=(\${(s: :)arguments})
  if (( position >= \${#kinds} && \${#kinds} > 0 )) && [[ \${kinds[-1]} == *'*' ]]; then
    position=$(( \${#kinds} - 1 ))
  fi
  kind=\${kinds[position + 1]-}
  _prefork_value "\${kind%'*'}"
}

if [[ \${funcstack[1]-} == _prefork ]]; then _prefork "$@"; else compdef _prefork prefork; fi
`;

const described = (name: string, description: string): string =>
  quoted(`${name.replaceAll(":", "\\:")}:${description}`);

const caseOf = (row: CompletionRow): string => {
  const parts = [
    `commands=(${row.commands.map(({ name, description }) => described(name, description)).join(" ")})`,
    `options=(${row.options.map(({ flag, description }) => described(flag, description)).join(" ")})`,
    `values=${quoted(valuesText(row))}`,
    `arguments=${quoted(argumentsText(row))}`,
  ];
  return `    (${quoted(row.path.join(" "))}) ${parts.join(" ")} ;;`;
};
