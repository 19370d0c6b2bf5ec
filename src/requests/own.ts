/** Requests about curlew itself. */
import { choice, choiceOf, many, place, texts } from '../core/field.ts';
import { request } from '../core/request.ts';
import { CLUSTER } from './channel.ts';
import { STORE, WEB } from './connection.ts';
import { FOLDER } from './node.ts';

export const HELP = request('help', {
  topic: texts('COMMAND|PAGE|CODE', 'a command; commands for all of them; a page; or an error code', {
    operand: true,
    offers: 'topic',
  }),
});

export const VERSION = request('version', {});

export const COMPLETION = request('completion', {
  shell: choice(['bash', 'zsh', 'fish'], 'the shell', {
    operand: true,
    required: 'specify a shell: bash, zsh or fish',
    hint: 'curlew completion bash',
  }),
});

const asked = many(choiceOf(['build', 'publish', 'bundle', 'install', 'load-images', 'channel', 'fleet']));

export const DOCTOR = request('doctor', {
  commands: asked('COMMAND', 'fail if this command cannot work; by default nothing fails', { operand: true }),
  from: place('STORE', 'also check a store; fail if it does not respond'),
  installDir: FOLDER.installDir,
  ...CLUSTER,
  ...WEB,
  ...STORE,
});
