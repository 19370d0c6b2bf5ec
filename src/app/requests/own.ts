/** Requests about curlew itself. */
import { choice, texts } from '../../core/field.ts';
import { request } from '../../core/request.ts';

export const HELP = request('help', 'Show the help of a command, or a page of the documentation', {
  topic: texts('COMMAND|PAGE', 'a command; commands for all of them; or a page', { operand: true, offers: 'topic' }),
});

export const VERSION = request('version', 'Show the version of curlew', {});

export const COMPLETION = request('completion', 'Print the completion script of a shell', {
  shell: choice(['bash', 'zsh', 'fish'], 'the shell', {
    operand: true,
    required: 'specify a shell: bash, zsh or fish',
    hint: 'curlew completion bash',
  }),
});
