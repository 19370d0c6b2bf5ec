/** Ctrl-C while the command itself is still being read, as from a slow disk: the file of a module is a pipe here. */
import { execa } from 'execa';
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { otherEnd } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { BUILT_MAIN } from '../support/built.ts';
import { interruptedAgain, startCurlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('components/early-signal', { timeoutMs: 60_000 });

/** A copy of the built command, in which the first module that `main.js` asks for is a pipe. */
async function slowCommand(
  box: Tree,
): Promise<{ readonly main: string; readonly pipe: string; readonly text: Buffer }> {
  const from = dirname(BUILT_MAIN);
  const to = box.at('dist/cli');
  await mkdir(to, { recursive: true });
  const [, name = ''] = /"\.\/([\w.-]+\.js)"/.exec(await readFile(BUILT_MAIN, 'utf8')) ?? [];
  for (const file of await readdir(from))
    if (file.endsWith('.js') && file !== name) await copyFile(join(from, file), join(to, file));
  await execa('mkfifo', [join(to, name)]);
  return { main: join(to, 'main.js'), pipe: join(to, name), text: await readFile(join(from, name)) };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} before the command is read ends it like a later one`, async () => {
    await using box = await tree({ 'package.json': '{ "type": "module" }' });
    const { main, pipe, text } = await slowCommand(box);
    const child = startCurlew(['installer', 'validate', 'spec.yaml', '--json'], { cwd: box.path, main });
    const end = await otherEnd(pipe);
    child.kill(signal);
    await end.writeFile(text);
    await end.close();
    const { exitCode, stderr, stdout } = await child;
    assert.equal([exitCode, stderr], [130, 'canceled; nothing was written']);
    assert.match(stdout, '"code": "CANCELLED"');
  });
}

test('a second Ctrl-C ends a command that cannot be read', async () => {
  await using box = await tree({ 'package.json': '{ "type": "module" }' });
  const { main, pipe } = await slowCommand(box);
  const child = startCurlew(['--help'], { cwd: box.path, main });
  await using _end = await otherEnd(pipe);
  assert.is(await interruptedAgain(child), 'SIGINT');
});

test.run();
