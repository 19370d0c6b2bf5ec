/** Debian's Chromium without a window, driven over the pipe of its DevTools protocol. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { until } from '../../support/appears.ts';
import { ROOT } from './programs.ts';

/** The script of axe, which `scripts/tools axe` installs. */
export const AXE: string = join(ROOT, '.curlew/tools/axe/node_modules/axe-core/axe.min.js');

export interface Browser extends AsyncDisposable {
  /** Goes to an address; resolves when the page has loaded. */
  readonly open: (url: string) => Promise<void>;
  /** The value of an expression in the page. */
  readonly evaluate: (expression: string) => Promise<unknown>;
  /** Presses keys one after the other: `Tab`, `Enter`, `Space`, `ArrowDown`, or single characters. */
  readonly press: (...keys: readonly string[]) => Promise<void>;
  readonly send: (method: string, params?: object) => Promise<Readonly<Record<string, unknown>>>;
}

interface Message {
  readonly id?: number;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

const KEYS: Readonly<
  Record<string, { readonly key: string; readonly windowsVirtualKeyCode: number; readonly text?: string }>
> = {
  Tab: { key: 'Tab', windowsVirtualKeyCode: 9 },
  Enter: { key: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  Space: { key: ' ', windowsVirtualKeyCode: 32, text: ' ' },
  ArrowDown: { key: 'ArrowDown', windowsVirtualKeyCode: 40 },
};

/** `folder` is for the browser's profile. */
export async function startBrowser(folder: string): Promise<Browser> {
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', `--user-data-dir=${folder}`];
  const child = spawn('chromium', [...flags, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const [, , , input, output] = child.stdio as unknown as readonly [null, null, null, Writable, Readable];
  const waiting = new Map<number, (message: Message) => void>();
  let session: string | undefined;
  let last = 0;
  let rest = Buffer.alloc(0);
  output.on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    for (let end = rest.indexOf(0); end !== -1; end = rest.indexOf(0)) {
      const message = JSON.parse(rest.subarray(0, end).toString('utf8')) as Message;
      rest = rest.subarray(end + 1);
      if (message.id !== undefined) waiting.get(message.id)?.(message);
    }
  });
  const send: Browser['send'] = async (method, params = {}) => {
    last += 1;
    const id = last;
    const answered = new Promise<Message>((resolve) => waiting.set(id, resolve));
    input.write(
      `${JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) })}\0`,
    );
    const { result, error } = await answered;
    waiting.delete(id);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  };
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  session = String((await send('Target.attachToTarget', { targetId, flatten: true }))['sessionId']);
  const evaluate: Browser['evaluate'] = async (expression) => {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await send('Runtime.evaluate', options);
    if (exceptionDetails !== undefined)
      throw new Error(`${expression.slice(0, 100)}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { readonly value?: unknown }).value;
  };
  return {
    send,
    evaluate,
    open: async (url) => {
      await send('Page.navigate', { url });
      const loaded = `location.href !== 'about:blank' && document.readyState === 'complete'`;
      await until(async () => (await evaluate(loaded)) === true);
    },
    press: async (...keys) => {
      for (const one of keys) {
        const key = KEYS[one] ?? { key: one, windowsVirtualKeyCode: one.toUpperCase().charCodeAt(0), text: one };
        await send('Input.dispatchKeyEvent', { type: 'keyDown', code: one, ...key });
        await send('Input.dispatchKeyEvent', { type: 'keyUp', code: one, ...key });
      }
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit');
      session = undefined;
      await send('Browser.close').catch(() => child.kill());
      await ended;
    },
  };
}

/** What axe finds on the open page: the rule, and the start of the elements. */
export async function axeViolations({ evaluate }: Browser): Promise<unknown> {
  await evaluate(`${await readFile(AXE, 'utf8')}; undefined`);
  return evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ html }) => html).join().slice(0, 500)))`,
  );
}
