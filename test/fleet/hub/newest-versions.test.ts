/** Newest versions of charts, which a controller asks for apart from its passes. */
import { CurlewError } from '../../../src/core/errors.ts';
import { NewestVersions } from '../../../src/fleet/hub/run/newest-versions.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/newest-versions');
const { signal } = new AbortController();

test('a version is asked for every ten minutes, and the last one counts while its repository is away', async () => {
  let change: () => void = () => undefined;
  const changed = async (): Promise<void> => new Promise((done) => (change = done));
  const versions = new NewestVersions(() => change());
  let asked = 0;
  let answer = async (): Promise<string> => Promise.resolve('1.0.0');
  const find = async (): Promise<string> => {
    asked += 1;
    return answer();
  };
  const at = (now: number) => versions.of('page', find, { now, signal });
  const first = changed();
  assert.equal(at(0).version, undefined);
  assert.equal([at(1).problem, asked], ['its newest version is asked for', 1]);
  await first;
  assert.equal([at(2).version, at(599).version, asked], ['1.0.0', '1.0.0', 1]);
  assert.ok(versions.keep(new Set(['page']), 2) <= 598_500);

  answer = async () => Promise.reject(new CurlewError('CLUSTER_FAILED', 'the repository is away'));
  const second = changed();
  assert.is(at(700).version, '1.0.0');
  await second;
  const { version, problem } = at(710);
  assert.equal([version, problem, asked], ['1.0.0', 'the repository is away', 2]);

  answer = async () => Promise.resolve('1.1.0');
  const third = changed();
  at(800);
  await third;
  assert.equal([at(801).version, at(801).problem], ['1.1.0', '']);
  assert.is(versions.keep(new Set(), 801), Infinity);
});

test.run();
