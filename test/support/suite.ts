/**
 * What test files import instead of `uvu`: the same shape, with the runner's silences closed. A hook that throws, a
 * test that never settles, a value that is thrown and is no error, `.run()` forgotten and `.only` in CI all fail.
 */
import { exec, suite as uvuSuite } from 'uvu';
import { cpuSeconds } from '../runner/machine.ts';

/** A soak takes hours. */
const PATIENCE = process.env['CURLEW_TEST_TIER'] === 'soak' ? 100 : 1;
/** What is still running this long after the last test ends with the process. */
const LEFT_MS = 5000;
/** Part of the titles of the tests to run; all of them when it is not set. */
const ONLY = process.env['CURLEW_TEST_ONLY'];

const CERTIFICATES = process.env['CURLEW_TEST_CA_CERTS'];
/** The runner keeps it from this process, not from those that tests start. */
if (CERTIFICATES !== undefined) process.env['NODE_EXTRA_CA_CERTS'] = CERTIFICATES;

type Body = (context: { readonly signal: AbortSignal }) => void | Promise<void>;

export interface Suite {
  (name: string, body: Body): void;
  before: (hook: () => void | Promise<void>) => void;
  after: (hook: () => void | Promise<void>) => void;
  /** Counts as a test that could not run: the reason is printed, and the number closes the whole run. */
  skip: (name: string, reason: string) => void;
  only: (name: string, body: Body) => void;
  run: () => void;
}

const neverRun = new Set<string>();
/** Suites that have not come to their end. */
let open = 0;
/** A test was given up while it ran: what it waits for keeps the process alive. */
let isHung = false;
/** A hook failed after the last test, whose failure uvu would have counted. */
let isBroken = false;
/** What the process has used before this file. */
let before = 0;
process.on('exit', () => {
  if (!endFile()) process.exitCode = 1;
});

/** Runs the suites of a file, for a process that runs several (`test/runner/host`). False where it failed. */
export async function runSuites(): Promise<boolean> {
  await exec();
  const isPassed = process.exitCode === 0 && endFile();
  process.exitCode = undefined;
  return isPassed;
}

/** Prints what the file has used of the processor, and what its tests could not notice. False where that is a failure. */
function endFile(): boolean {
  const used = cpuSeconds();
  // The runner cannot ask for it: what a process has used is gone with it.
  if (process.env['CURLEW_TEST_TIER'] !== undefined) console.log(`CPU ${(used - before).toFixed(1)}`);
  if (neverRun.size > 0) console.error(`suites without .run(): ${[...neverRun].join(', ')}`);
  const isOk = !isBroken && neverRun.size === 0;
  before = used;
  isBroken = false;
  neverRun.clear();
  return isOk;
}

async function withDeadline(body: Body, timeoutMs: number): Promise<void> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      isHung = true;
      const error = new Error(`still running after ${timeoutMs} ms`);
      controller.abort(error);
      reject(error);
    }, timeoutMs);
  });
  try {
    await Promise.race([
      (async () => {
        await body({ signal: controller.signal });
      })(),
      late,
    ]);
  } catch (thrown) {
    throw thrown instanceof Error ? thrown : new Error(`thrown, and no error: ${String(thrown)}`);
  } finally {
    clearTimeout(timer);
  }
}

/** A named group of tests. `timeoutMs` guards against hanging; it is no measurement. */
export function suite(title: string, { timeoutMs = 60_000 }: { readonly timeoutMs?: number } = {}): Suite {
  const inner = uvuSuite(title);
  let setup: Error | undefined;
  let isChosen = ONLY === undefined;
  neverRun.add(title);
  const guarded = (body: Body) => async (): Promise<void> => {
    if (setup !== undefined) throw new Error(`before hook failed: ${setup.message}`, { cause: setup });
    await withDeadline(body, timeoutMs * PATIENCE);
  };
  const caught = (hook: () => void | Promise<void>, keep: (error: Error) => void) => async (): Promise<void> => {
    try {
      await hook();
    } catch (thrown) {
      keep(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  };
  return Object.assign(
    (name: string, body: Body): void => {
      if (ONLY !== undefined && !name.includes(ONLY)) return;
      isChosen = true;
      inner(name, guarded(body));
    },
    {
      before: (hook: () => void | Promise<void>): void => {
        inner.before(caught(hook, (error) => (setup ??= error)));
      },
      after: (hook: () => void | Promise<void>): void => {
        inner.after(
          caught(hook, (error) => {
            console.error(`${title}: after hook failed`, error);
            isBroken = true;
          }),
        );
      },
      skip: (name: string, reason: string): void => {
        console.log(`SKIPPED ${reason} | ${title}: ${name}`);
      },
      only: (name: string, body: Body): void => {
        if (process.env['CI'] !== undefined) throw new Error(`.only("${name}") must not reach CI`);
        inner.only(name, guarded(body));
      },
      run: (): void => {
        neverRun.delete(title);
        if (!isChosen) return;
        open += 1;
        inner.after(() => {
          open -= 1;
          if (open === 0 && isHung) setTimeout(() => process.exit(1), LEFT_MS).unref();
        });
        inner('setup succeeds', () => {
          if (setup !== undefined) throw setup;
        });
        inner.run();
      },
    },
  );
}
