/** The scripts of an online install: `curl …/<id>/install.sh | sudo bash`. Pure. */
import { createHash } from 'node:crypto';
import { INSTALL_SH } from '../core/layout.ts';

export interface ScriptInputs {
  /** Functions that all scripts have: scripts/serve/start.sh. */
  readonly functions: string;
  /** `install.sh` and its siblings: what is asked for. */
  readonly script: string;
  /** Address of this server as clients see it, without a slash at its end. */
  readonly base: string;
  readonly release: string;
  readonly id: string;
  /** Text of the spec. */
  readonly spec: string;
  /** What it calls is to take nothing unsigned: the keys are a matter of the node. */
  readonly signed: boolean;
  /** Hex digits of the sha256 of the curlew for nodes; undefined where there is none. */
  readonly sums: { readonly amd64: string | undefined; readonly arm64: string | undefined };
}

/** A bash script that runs as a whole or not at all, and does not read from its standard input, which it may be. */
export function formatScript({ functions, script, base, release, id, spec, sums, signed }: ScriptInputs): string {
  // No text holds its own digest, so no line of the spec ends the document.
  const end = `CURLEW_${createHash('sha256').update(spec).digest('hex')}`;
  const text = spec.endsWith('\n') ? spec : `${spec}\n`;
  const words = [script, base, release, id, sums.amd64 ?? '-', sums.arm64 ?? '-'].map(quoted);
  // What runs tasks is any command.
  if (signed && script !== 'tasks.sh') words.push('--require-signed');
  return [
    '#!/usr/bin/env bash',
    `# curlew ${script === INSTALL_SH ? 'install' : script.replace(/\.sh$/, '')}: release ${release}, installer ${id}`,
    'set -eu',
    functions.trimEnd(),
    'curlew_spec() {',
    `  cat <<'${end}'`,
    `${text}${end}`,
    '}',
    `curlew_start ${words.join(' ')} "$@"`,
    '',
  ].join('\n');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
