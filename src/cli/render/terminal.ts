/** Progress on a terminal: a headline for the whole command, and the running steps with progress bars. */
import { Listr, ListrLogger, ProcessOutput } from 'listr2';
import type { ProgressEvent, Report } from '../../core/events.ts';
import { createPlainLines, harmless } from './plain.ts';
import { fitted, widthFor } from './columns.ts';
import { formatBytes, formatSeconds } from './units.ts';

export interface Progress {
  readonly report: Report;
  /** Clears the display while `work` uses the terminal. */
  readonly around: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Clears the display. May be called twice. */
  readonly stop: () => Promise<void>;
}

interface Step {
  readonly title: string;
  readonly since: number;
  bytes: number | undefined;
  done: number;
  message?: string;
}

const MAX_LINES = 8;
const BAR = 20;
const REFRESH_MS = 100;
/** Time after which something is shown. */
const FIRST_MS = 500;
/** Time without a running step after which the display is cleared. */
const IDLE_MS = 1000;
/** Columns that listr2 uses before and after each line. */
const MARGIN = 4;
/** `12.3 MB of 40.5 MB` */
const SIZES = 18;
const NARROW = 64;
/** Window for the speed, so that fast reads from a cache do not distort the estimate. */
const SPEED_MS = 10_000;
const SPEED_KNOWN_MS = 2000;
/** A step without a bar shows its duration after this many seconds. */
const SHOW_DURATION_S = 3;

/** A bar of fixed width: `████████············  40 %`. */
export function progressBar(done: number, total: number): string {
  const share = shareOf(done, total);
  const filled = Math.round(share * BAR);
  return `${'█'.repeat(filled)}${'·'.repeat(BAR - filled)} ${percent(share)}`;
}

function shareOf(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(1, Math.max(0, done / total));
}

function percent(share: number): string {
  return `${String(Math.floor(share * 100)).padStart(3)} %`;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Bytes per second in the last samples; undefined without enough samples. */
function createSpeed(now: () => number): (bytes: number) => number | undefined {
  const samples: { readonly at: number; readonly bytes: number }[] = [];
  return (bytes) => {
    const at = now();
    samples.push({ at, bytes });
    while (samples.length > 2 && at - (samples[0]?.at ?? at) > SPEED_MS) samples.shift();
    const [first] = samples;
    if (first === undefined || at - first.at < SPEED_KNOWN_MS || bytes <= first.bytes) return undefined;
    return ((bytes - first.bytes) * 1000) / (at - first.at);
  };
}

/** The state of the display, updated by events. Pure except for the given clock. */
export function createProgressModel(now: () => number): {
  readonly take: Report;
  /** Undefined before the first step. */
  readonly headline: () => string | undefined;
  readonly lines: (columns: number) => readonly string[];
  /** No step is running. */
  readonly isIdle: () => boolean;
} {
  const active = new Map<string, Step>();
  const over = { steps: 0, bytes: 0 };
  const speedOf = createSpeed(now);
  const take = (event: ProgressEvent): void => {
    if (event.type === 'note') return;
    if (event.type === 'step-started') {
      active.set(event.id, { title: event.title, since: now(), bytes: event.bytes, done: 0 });
      return;
    }
    const step = active.get(event.id);
    if (step === undefined) return;
    if (event.type === 'step-progress') {
      step.done = event.bytes;
      step.bytes = event.total ?? step.bytes;
    } else if (event.type === 'step-log') {
      step.message = event.text;
    } else {
      over.steps += 1;
      over.bytes += step.bytes ?? 0;
      active.delete(event.id);
    }
  };
  const transfer = (): string => {
    const sized = [...active.values()].filter(({ bytes }) => bytes !== undefined);
    const total = sized.reduce((sum, { bytes = 0 }) => sum + bytes, over.bytes);
    if (sized.length === 0 || total === 0) return '';
    const done = sized.reduce((sum, { bytes = 0, done: some }) => sum + Math.min(bytes, some), over.bytes);
    const speed = speedOf(done);
    const sum = `, ${formatBytes(done)} of ${formatBytes(total)}`;
    if (speed === undefined || done >= total) return sum;
    return `${sum}, ${formatBytes(Math.round(speed))}/s, ${formatSeconds((total - done) / speed)} left`;
  };
  return {
    take,
    isIdle: () => active.size === 0,
    headline: () => {
      const steps = over.steps + active.size;
      return steps === 0 ? undefined : `${over.steps} of ${steps} done${transfer()}`;
    },
    lines: (columns) => {
      const shown = [...active.values()].slice(0, MAX_LINES);
      const space = columns - MARGIN;
      const nameWidth = Math.max(0, ...shown.map(({ title }) => harmless(title).length));
      const lines = shown.map((step) => stepLine(step, { space, nameWidth, seconds: (now() - step.since) / 1000 }));
      return active.size > MAX_LINES ? [...lines, `and ${active.size - MAX_LINES} more`] : lines;
    },
  };
}

/** One step in `space` columns; names use up to `nameWidth` columns. */
function stepLine(
  { title, bytes, done, message }: Step,
  { space, nameWidth, seconds }: { readonly space: number; readonly nameWidth: number; readonly seconds: number },
): string {
  const name = harmless(title);
  if (message !== undefined) return cut(`${name}: ${harmless(message)}`, space);
  if (bytes === undefined) {
    const facts = [
      ...(done === 0 ? [] : [formatBytes(done)]),
      ...(seconds < SHOW_DURATION_S ? [] : [formatSeconds(seconds)]),
    ];
    return cut([name.padEnd(Math.min(nameWidth, space - 10)), ...facts].join('  ').trimEnd(), space);
  }
  const sizes = `${formatBytes(Math.min(done, bytes)).padStart(7)} of ${formatBytes(bytes)}`.padEnd(SIZES);
  const bar = space < NARROW ? percent(shareOf(done, bytes)) : `${progressBar(done, bytes)} ${sizes}`;
  const width = Math.min(nameWidth, Math.max(8, space - bar.length - 2));
  return `${cut(name, width).padEnd(width)}  ${bar}`.trimEnd();
}

/** Starts the animated display; the returned function stops it. */
function display(stream: NodeJS.WriteStream, text: () => string): () => Promise<void> {
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const list = new Listr(
    [
      {
        title: 'starting',
        task: async (_, task) => {
          const timer = setInterval(() => {
            task.title = text();
          }, REFRESH_MS);
          await finished;
          clearInterval(timer);
        },
      },
    ],
    {
      // The command handles Ctrl-C: listr2 would end the process before the cleanup.
      registerSignalListeners: false,
      rendererOptions: {
        clearOutput: true,
        formatOutput: 'truncate',
        logger: new ListrLogger({ useIcons: true, processOutput: new ProcessOutput(stream, stream) }),
      },
    },
  );
  const running = list.run();
  return async () => {
    finish();
    await running;
  };
}

/**
 * Starts the display; `stop` clears it and waits until the terminal is restored. It begins with the first step, or before, with
 * `title`, if nothing else is shown soon.
 */
export function createTerminalProgress(stream: NodeJS.WriteStream, title: string): Progress {
  const model = createProgressModel(Date.now);
  const plainLine = createPlainLines(Date.now, title);
  const notes: string[] = [];
  const started = Date.now();
  const headline = (): string => model.headline() ?? `${title}  ${formatSeconds((Date.now() - started) / 1000)}`;
  const text = (): string => [headline(), ...model.lines(stream.columns)].join('\n');
  let shown: (() => Promise<void>) | undefined;
  let isHidden = false;
  let clearing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await shown?.();
    shown = undefined;
    for (const note of notes.splice(0)) stream.write(`${note}\n`);
  };
  const begin = (): void => {
    if (!isHidden && clearing === undefined) shown ??= display(stream, text);
  };
  /** Makes place for notes: the display begins again below them if something is running. */
  const clear = (): void => {
    clearing ??= end().finally(() => {
      clearing = undefined;
      if (!model.isIdle()) begin();
    });
  };
  let first = setTimeout(begin, FIRST_MS).unref();
  let idle: NodeJS.Timeout | undefined;
  const hide = async (): Promise<void> => {
    isHidden = true;
    clearTimeout(first);
    clearTimeout(idle);
    await clearing;
    await end();
  };
  return {
    report: (event) => {
      clearTimeout(first);
      const line = plainLine.take(event);
      const isNote = event.type === 'note' || event.type === 'step-failed';
      if (line !== undefined && isNote) {
        notes.push(fitted(line, widthFor(stream) ?? line.length));
        clear();
      }
      if (event.type === 'note') return;
      model.take(event);
      begin();
      clearTimeout(idle);
      if (model.isIdle()) idle = setTimeout(clear, IDLE_MS).unref();
    },
    around: async (work) => {
      await hide();
      try {
        return await work();
      } finally {
        isHidden = false;
        if (model.isIdle()) first = setTimeout(begin, FIRST_MS).unref();
        else begin();
      }
    },
    stop: hide,
  };
}
