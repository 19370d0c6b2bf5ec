/** Containers of a build in a real Docker engine: what goes in, what comes out, and that nothing stays. Needs root. */
import { mkdir, readFile, stat } from 'node:fs/promises';
import { sentBytes } from '../../src/formats/archive/send-tar.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import type { ContainerRequest, EndedContainer } from '../../src/build/containers/containers.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BASE, openContainers, startEngine, type EngineBox } from './support/engine.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('containers of a build', { timeoutMs: 120_000 });
const LIMITS = { bytes: 1 << 20, files: 100 };

const opened = createOpened();
let box: Tree;
let engine: EngineBox;
let before: readonly string[];

function script(text: string, rest: Partial<ContainerRequest> = {}): ContainerRequest {
  return {
    id: 'trial',
    doing: 'try',
    image: BASE,
    command: ['/bin/sh', '-c', text],
    files: [],
    limitMs: 60_000,
    ...rest,
  };
}

const statusOf = async ({ status }: EndedContainer): Promise<number> => status;

let folders = 0;
async function emptyFolder(): Promise<string> {
  const path = box.at(`out${(folders += 1)}`);
  await mkdir(path);
  return path;
}

const why = cannotRun('dockerd', '/usr/bin/docker', 'busybox');
if (why !== undefined) test.skip('all of it', why);
else {
  test.before(async () => {
    box = opened.keep(await tree());
    engine = opened.keep(await startEngine(box.at('engine')));
    before = await engine.inventory();
  });
  test.after(opened.close);

  test('files and variables go in, lines and a folder come out, and the container is gone', async ({ signal }) => {
    await using open = await openContainers(engine.env);
    const into = await emptyFolder();
    const request = script(
      'printf "one\\ntwo\\r\\n\\033[31mred\\033[0m" && cat /in/file && echo "$WORD" >&2 && cp /in/run /out/a && mkdir /out/b && ln /out/a /out/b/c; exit 7',
      {
        env: { WORD: 'a b "c"' },
        files: [
          { kind: 'folder', path: 'out', mode: 0o777 },
          sentBytes('in/file', 'content\n'),
          sentBytes('in/run', '#!/bin/sh\n', 0o755),
        ],
      },
    );
    const result = await open.containers.run(
      request,
      async ({ status, collect }) => ({ status, files: await collect('/out', { into, limits: LIMITS }) }),
      { report: open.report, signal },
    );
    const file = { mode: 0o755, size: 10, digest: digestOf('#!/bin/sh\n') } as const;
    assert.equal(result, {
      status: 7,
      files: [
        { path: 'a', ...file },
        { path: 'b/c', ...file },
      ],
    });
    assert.equal(open.lines().toSorted(), ['a b "c"', 'one', 'redcontent', 'two']);
    assert.is(await readFile(`${into}/b/c`, 'utf8'), '#!/bin/sh\n');
    assert.is((await stat(`${into}/b/c`)).nlink, 1, 'a hard link becomes a file of its own');
    await open[Symbol.asyncDispose]();
    assert.equal(await engine.inventory(), before);
  });

  for (const [attack, text, message] of [
    [
      'a symbolic link out of the folder',
      'ln -s ../../etc/passwd /out/x',
      /"x" is a symbolic link to "\.\.\/\.\.\/etc\/passwd"/,
    ],
    ['a symbolic link within the folder', 'touch /out/a; ln -s a /out/x', /"x" is a symbolic link to "a"/],
    [
      'a symbolic link in place of the folder',
      'rm -r /out; ln -s /bin /out',
      /not a folder but a symbolic link to "\/bin"/,
    ],
    ['a file in place of the folder', 'rm -r /out; touch /out', /not a folder but of type File/],
    ['a device', 'mknod /out/x c 1 3', /"x" is of type CharacterDevice/],
    ['a pipe', 'mkfifo /out/x', /"x" is of type FIFO/],
    [
      'a name with a control character',
      'touch "$(printf "/out/a\\001b")"',
      /a component that contains a control character/,
    ],
    ['more bytes than allowed', 'dd if=/dev/zero of=/out/x bs=1024 count=1025', /more than 1048576 bytes/],
    [
      'a sparse file larger than any disk',
      'dd if=/dev/zero of=/out/x bs=1 count=1 seek=1099511627776',
      /more than 1048576 bytes/,
    ],
    ['more files than allowed', 'for i in $(seq 101); do touch /out/$i; done', /more than 100 files/],
    ['no folder at all', 'rm -r /out', /it does not exist/],
  ] as const) {
    test(`${attack} is refused`, async ({ signal }) => {
      await using open = await openContainers(engine.env);
      const into = await emptyFolder();
      const request = script(`${text} || exit 9`, { files: [{ kind: 'folder', path: 'out', mode: 0o755 }] });
      const taken = open.containers.run(
        request,
        async ({ status, collect }) => {
          assert.is(status, 0);
          return collect('/out', { into, limits: LIMITS });
        },
        { report: open.report, signal },
      );
      await assert.rejectsWith(taken, 'CONTAINER_FAILED', message);
      assert.equal(await engine.inventory(), before);
    });
  }

  test('a program that never ends is ended, and its last lines are told', async ({ signal }) => {
    await using open = await openContainers(engine.env);
    const error = await assert.rejectsWith(
      open.containers.run(script('echo waiting; sleep 1000', { limitMs: 10_000 }), statusOf, {
        report: open.report,
        signal,
      }),
      'CONTAINER_FAILED',
      /^cannot try: still running after 10 seconds\n {2}\| waiting$/,
    );
    assert.match(error.hint ?? '', /time limit/);
    assert.equal(await engine.inventory(), before);
  });

  test('a program that the image lacks is an error with the engine’s words', async ({ signal }) => {
    await using open = await openContainers(engine.env);
    const request = { ...script(''), command: ['/none'] };
    await assert.rejectsWith(
      open.containers.run(request, statusOf, { report: open.report, signal }),
      'CONTAINER_FAILED',
      /"\/none": stat \/none: no such file or directory/,
    );
    assert.equal(await engine.inventory(), before);
  });

  test('what comes after a container may fail: the container goes all the same', async ({ signal }) => {
    await using open = await openContainers(engine.env);
    const fail = async (): Promise<never> => {
      throw new CurlewError('NO_SPACE', 'full');
    };
    await assert.rejectsWith(
      open.containers.run(script('true'), fail, { report: open.report, signal }),
      'NO_SPACE',
      /^full$/,
    );
    assert.equal(await engine.inventory(), before);
  });

  test('endless output neither fills memory nor hides the end', async ({ signal }) => {
    let said = 0;
    await using open = await openContainers(engine.env, () => (said += 1));
    const request = script('for i in $(seq 20000); do echo line $i; done; printf "%0100000d" 1');
    const result = await open.containers.run(request, async ({ lastLines }) => lastLines, {
      report: open.report,
      signal,
    });
    assert.is(said, 20_001);
    assert.is(result.length, 20);
    assert.is(result.at(-2), 'line 20000');
    assert.is(result.at(-1)?.length, 500);
  });

  test('without an engine the message says how to start one', async ({ signal }) => {
    await using open = await openContainers({ DOCKER_HOST: `unix://${box.at('none.sock')}` });
    const error = await assert.rejectsWith(
      open.containers.bring(BASE, { id: 'trial', report: open.report, signal }),
      'FETCH_FAILED',
      /the Docker engine does not respond/,
    );
    assert.match(error.hint ?? '', /start it .*without an engine/);
  });
}

test.run();
