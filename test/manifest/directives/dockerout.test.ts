import { parseManifest } from '../../../src/manifest/parse.ts';
import { planManifest } from '../../../src/manifest/directives.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/directives/dockerout');

test('a build argument by its name sets that one, and a finding names it', () => {
  const { manifest, diagnostics } = parseManifest('M', 'dockerout rhel-8 D --build-arg=RELEASE=1.2\n');
  const [step] = planManifest(manifest);
  assert.equal(step, {
    kind: 'container-build',
    destination: 'rhel-8',
    dockerfile: 'D',
    version: '1.2',
    argument: 'RELEASE',
  });
  assert.equal(
    diagnostics.map(({ code, severity }) => [code, severity]),
    [['dockerout/build-arg', 'info']],
  );
});

test('a second build into the folder of a system is kept, with a finding at its folder', () => {
  const { manifest, diagnostics } = parseManifest('M', 'dockerout rhel-8 A 1\ndockerout rhel-8 B 1\n');
  assert.is(planManifest(manifest).length, 2);
  assert.equal(
    diagnostics.map(({ code, message, place: { line, column } }) => [code, message, line, column]),
    [['dockerout/duplicate', 'line 1 also builds into rhel-8; files with the same name are overwritten', 2, 11]],
  );
});

test('a misspelled system is answered with its name, and nothing is planned for it', () => {
  const { manifest, diagnostics } = parseManifest('M', 'dockerout rhel8 A 1\n');
  assert.equal(planManifest(manifest), []);
  assert.match(diagnostics[0]?.hint ?? '', /^did you mean "rhel-8"\? known: ubuntu-16\.04, /);
});

test.run();
