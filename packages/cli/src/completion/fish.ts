/** The completion script for fish.
 *  Invariant: descriptions are data; fish itself matches and quotes what is offered.
 *  Elsewhere: what can be completed (table.ts). */

import { argumentsText, quotedForFish, valuesText } from "./shell-text.ts";
import type { CompletionRow } from "./table.ts";

export const fishScript = (
  rows: readonly CompletionRow[],
): string => `# Completion of prefork for fish. To install it for you:
#   prefork completion fish > ~/.config/fish/completions/prefork.fish
# To use it in this shell only:
#   prefork completion fish | source

# Prints the part $argv[2] of what can follow the command $argv[1]: commands, options, values or arguments.
function __prefork_row
    switch "$argv[1] $argv[2]"
${rows.map(casesOf).join("\n")}
    end
end

# Completes a value of the kind $argv[1]; $argv[2] is what stands before it in the same word, $argv[3] the last argument.
function __prefork_value
    switch $argv[1]
        case '=*'
            printf '%s\\n' $argv[2](string split '|' -- (string sub -s 2 -- $argv[1]))
        case file
            __fish_complete_path (commandline -ct)
        case folder
            __fish_complete_directories (commandline -ct) ''
        case session task key
            set -l found (command prefork __complete $argv[1] 2>/dev/null)
            and printf '%s\\n' $argv[2]$found
        case value
            set -l found (command prefork __complete value $argv[3] 2>/dev/null)
            and printf '%s\\n' $argv[2]$found
    end
end

function __prefork_complete
    set -l path ''
    set -l position 0
    set -l expected ''
    set -l last ''
    set -l literal ''
    set -l tokens (commandline -opc)
    for word in $tokens[2..-1]
        if test -n "$expected"; and not string match -q -- '-*' $word
            set expected ''
            continue
        end
        set expected ''
        if test -z "$literal"; and test "$word" = --
            set literal 1
        else if test -z "$literal"; and string match -q -- '-*' $word
            if string match -q -- "$word:*" (__prefork_row "$path" values)
                set expected $word
            end
        else if test $position = 0; and string match -q -- "$word"\\t'*' (__prefork_row "$path" commands)
            set path (string trim -- "$path $word")
        else
            set position (math $position + 1)
            set last $word
        end
    end
    set -l current (commandline -ct)
    set -l before ''
    if test -z "$literal"; and string match -q -- '-*=*' "$current"
        set expected (string split -m 1 = -- $current)[1]
        set before $expected=
    end
    if test -n "$expected"
        set -l kind (string match -- "$expected:*" (__prefork_row "$path" values))
        test -n "$kind[1]"; and __prefork_value (string sub -s (math (string length -- $expected) + 2) -- $kind[1]) "$before" "$last"
        return
    end
    if test -z "$literal"; and string match -q -- '-*' "$current"
        __prefork_row "$path" options
        return
    end
    if test $position = 0
        __prefork_row "$path" commands
    end
    set -l kinds (__prefork_row "$path" arguments)
    set -l count (count $kinds)
    if test $count -gt 0; and test $position -ge $count; and string match -q -- '*\\*' $kinds[-1]
        set position (math $count - 1)
    end
    set -l kind $kinds[(math $position + 1)]
    if test -n "$kind"
        __prefork_value (string trim -r -c '*' -- $kind) '' "$last"
    end
end

complete -c prefork -f -a '(__prefork_complete)'
`;

const described = (name: string, description: string): string =>
  `${quotedForFish(name)}\\t${quotedForFish(description)}`;

const casesOf = (row: CompletionRow): string => {
  const parts: readonly (readonly [string, readonly string[]])[] = [
    ["commands", row.commands.map(({ name, description }) => described(name, description))],
    ["options", row.options.map(({ flag, description }) => described(flag, description))],
    ["values", words(valuesText(row))],
    ["arguments", words(argumentsText(row))],
  ];
  return parts
    .filter(([, texts]) => texts.length > 0)
    .map(
      ([part, texts]) => `        case '${row.path.join(" ")} ${part}'\n            printf '%s\\n' ${texts.join(" ")}`,
    )
    .join("\n");
};

const words = (text: string): readonly string[] => (text === "" ? [] : text.split(" ").map(quotedForFish));
