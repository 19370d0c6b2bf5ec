/** `curlew completion`: prints the completion script of a shell. */
import { COMPLETION } from '../../requests/own.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(COMPLETION, {
  details: `The script calls curlew for commands, options, values, add-ons of the working folder, releases and add-ons of a store in a folder, and add-ons of this node. It never reads a remote store and writes nothing.

  bash: add the first example to ~/.bashrc. zsh: write the script to a file _curlew in a folder of fpath. fish: write it to ~/.config/fish/completions/curlew.fish.`,
  examples: [
    'source <(curlew completion bash)',
    'curlew completion zsh >~/.zfunc/_curlew',
    'curlew completion fish | source',
  ],
  run: async ({ request: { shell } }) => {
    const { readFile } = await import('node:fs/promises');
    const { ownScripts } = await import('../../own/scripts.ts');
    return { shell, script: await readFile(`${ownScripts()}/completion/curlew.${shell}`, 'utf8') };
  },
  render: ({ script }) => script.trimEnd(),
});
