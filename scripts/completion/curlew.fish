# Completion of curlew for fish: curlew completion fish >~/.config/fish/completions/curlew.fish

function __curlew_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -e words[1]
    set -l found (curlew __complete $words "$typed" 2>/dev/null)
    switch "$found[1]"
        case files
            __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$typed")
        case folders
            __fish_complete_directories (string replace -r '^--[^=]*=' '' -- "$typed")
    end
    test (count $found) -gt 1; and string join \n -- $found[2..-1]
end

complete -c curlew -f -a '(__curlew_complete)'
