/** The completion script for bash.
 *  Invariant: it works without the bash-completion package and with any COMP_WORDBREAKS. Names from the program are never
 *  evaluated: no `compgen -W`, which expands its words.
 *  Elsewhere: what can be completed (table.ts). */

import { argumentsText, quoted, valuesText } from "./shell-text.ts";
import type { CompletionRow } from "./table.ts";

export const bashScript = (
  rows: readonly CompletionRow[],
): string => `# Completion of prefork for bash. To install it for you:
#   mkdir -p ~/.local/share/bash-completion/completions
#   prefork completion bash > ~/.local/share/bash-completion/completions/prefork
# To use it in this shell only:
#   source <(prefork completion bash)

# Sets what can follow the command $1: its commands, options, options with a value, and arguments.
_prefork_row() {
  commands= options= values= arguments=
  case $1 in
${rows.map(caseOf).join("\n")}
    *) return 1 ;;
  esac
}

# Adds each word of the list $1, which "|" separates, that starts with $current.
_prefork_words() {
  local -a list
  local word
  IFS='|' read -ra list <<< "$1"
  for word in "\${list[@]}"; do
    if [[ $word == "$current"* ]]; then COMPREPLY+=("$prefix$word"); fi
  done
}

# Adds what prefork itself knows: sessions, tasks, settings. A second tab also shows their titles.
_prefork_names() {
  local name title
  local -a found=() titled=()
  while IFS=$'\\t' read -r name title; do
    if [[ -n $name && $name == "$current"* ]]; then
      printf -v name %q "$name"
      found+=("$prefix$name")
      titled+=("$name  $title")
    fi
  done < <("$program" __complete "$@" 2> /dev/null)
  if [[ \${COMP_TYPE-} == 63 && \${#found[@]} -gt 1 ]]; then found=("\${titled[@]}"); fi
  COMPREPLY+=("\${found[@]}")
}

# Completes a value of the kind $1.
_prefork_value() {
  case $1 in
    =*) _prefork_words "\${1#=}" ;;
    file) compopt -o default ;;
    folder) compopt -o dirnames ;;
    session | task | key) _prefork_names "$1" ;;
    value) _prefork_names value "$last" ;;
  esac
}

_prefork() {
  COMPREPLY=()
  local program=\${COMP_WORDS[0]/#\\~\\//$HOME/}
  local commands options values arguments kind
  # Bash splits words at = and :, so parts without white space between them are joined again.
  local -a words=()
  local rest=\${COMP_LINE:0:COMP_POINT} space part i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    part=\${COMP_WORDS[i]}
    space=\${rest%%[![:space:]]*}
    rest=\${rest#"$space"}
    rest=\${rest#"$part"}
    if [[ -z $space && i -gt 0 ]]; then words[\${#words[@]}-1]+=$part; else words+=("$part"); fi
  done
  local current=\${words[\${#words[@]}-1]} prefix= path= position=0 expected= last= isLiteral= word
  _prefork_row ""
  for word in "\${words[@]:1:\${#words[@]}-2}"; do
    if [[ -n $expected && $word != -* ]]; then
      expected=
      continue
    fi
    expected=
    if [[ -z $isLiteral && $word == -- ]]; then
      isLiteral=1
    elif [[ -z $isLiteral && $word == -* ]]; then
      if [[ " $values " == *" $word:"* ]]; then expected=value; fi
    elif [[ $position == 0 && "|$commands|" == *"|$word|"* ]]; then
      path=\${path:+$path }$word
      _prefork_row "$path"
    else
      position=$((position + 1))
      last=$word
    fi
  done
  word=\${words[\${#words[@]}-2]}
  if [[ -z $isLiteral && $current == -*=* ]]; then
    word=\${current%%=*}
    current=\${current#*=}
    if [[ $COMP_WORDBREAKS != *=* ]]; then prefix=$word=; fi
    expected=value
  fi
  if [[ -n $expected ]]; then
    kind=" $values"
    kind=\${kind#*" $word:"}
    _prefork_value "\${kind%% *}"
    return
  fi
  if [[ -z $isLiteral && $current == -* ]]; then
    _prefork_words "$options"
    return
  fi
  if [[ $position == 0 ]]; then _prefork_words "$commands"; fi
  local -a kinds
  read -ra kinds <<< "$arguments"
  if ((position >= \${#kinds[@]} && \${#kinds[@]} > 0)) && [[ \${kinds[\${#kinds[@]}-1]} == *'*' ]]; then
    position=$((\${#kinds[@]} - 1))
  fi
  kind=\${kinds[position]-}
  _prefork_value "\${kind%'*'}"
}

complete -F _prefork prefork
`;

const caseOf = (row: CompletionRow): string => {
  const parts = [
    `commands=${quoted(row.commands.map(({ name }) => name).join("|"))}`,
    `options=${quoted(row.options.map(({ flag }) => flag).join("|"))}`,
    `values=${quoted(valuesText(row))}`,
    `arguments=${quoted(argumentsText(row))}`,
  ];
  return `    ${quoted(row.path.join(" "))}) ${parts.join(" ")} ;;`;
};
