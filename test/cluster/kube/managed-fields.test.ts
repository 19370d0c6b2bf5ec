/** Fields of managers: which go to another manager, what an apply leaves of an object, and which values count for a digest. */
import {
  addedByOthers,
  appliedTo,
  handedOver,
  valuesOf,
  type FieldsEntry,
} from '../../../src/cluster/kube/managed-fields.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/kube/managed-fields');

function entry(manager: string, operation: string, fieldsV1: object, subresource = ''): FieldsEntry {
  return { manager, operation, subresource, fieldsV1 };
}

const given = [
  entry('kops', 'Apply', { 'f:data': { 'f:a': {} } }),
  entry('kubectl-edit', 'Update', { 'f:data': { 'f:b': {} } }),
  entry('kubectl-client-side-apply', 'Update', { 'f:data': { '.': {}, 'f:c': {} } }),
  entry('kubectl', 'Update', { 'f:status': {} }, 'status'),
  entry('controller', 'Update', { 'f:data': { 'f:d': {} } }),
];

for (const [title, how, own, expected] of [
  ['the first time, those of programs that apply', 'first', [], { '.': {}, 'f:a': {}, 'f:c': {} }],
  [
    'each time, those of people too',
    'always',
    [{ 'f:e': {} }],
    { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {}, 'f:e': {} },
  ],
  ['later, none', 'first', [{ 'f:e': {} }], undefined],
  ['never, none', 'never', [], undefined],
] as const) {
  test(`fields of those who applied an object before are handed over: ${title}`, () => {
    const entries = [...given, ...own.map((fields) => entry('me', 'Apply', { 'f:data': fields }))];
    const after = handedOver(entries, 'me', how);
    assert.equal(after?.at(-1), expected && entry('me', 'Apply', { 'f:data': expected }));
    const left = how === 'always' ? ['kubectl', 'controller'] : ['kubectl-edit', 'kubectl', 'controller'];
    if (after !== undefined)
      assert.equal(
        after.slice(0, -1).map(({ manager }) => manager),
        left,
      );
  });
}

test('an object without former managers is left as it is', () => {
  assert.is(handedOver([entry('controller', 'Update', {})], 'me', 'always'), undefined);
});

test('an apply removes what its manager alone owned, merges lists by their keys, and replaces other lists', () => {
  const port = (name: string, protocol: string): object => ({ name, containerPort: 53, protocol });
  const object = {
    spec: {
      containers: [
        {
          name: 'dns',
          image: 'dns:1',
          ports: [port('old', 'UDP'), port('tcp', 'TCP')],
          env: [{ name: 'A', value: '1' }],
        },
        { name: 'old', image: 'old:1' },
        { name: 'injected', image: 'mesh:1' },
      ],
      args: ['a', 'b'],
      replicas: 3,
      defaulted: true,
    },
    metadata: { finalizers: ['mine', 'theirs'] },
  };
  const container = (fields: object): object => ({ '.': {}, 'f:name': {}, 'f:image': {}, ...fields });
  const tcp = { '.': {}, 'f:containerPort': {}, 'f:name': {} };
  const mine = {
    'f:metadata': { 'f:finalizers': { 'v:"mine"': {} } },
    'f:spec': {
      'f:args': {},
      'f:replicas': {},
      'f:containers': {
        'k:{"name":"dns"}': container({
          'f:ports': { 'k:{"containerPort":53,"protocol":"TCP"}': tcp, 'k:{"containerPort":53,"protocol":"UDP"}': tcp },
        }),
        'k:{"name":"old"}': container({}),
      },
    },
  };
  const theirs = {
    'f:metadata': { 'f:finalizers': { 'v:"theirs"': {} } },
    'f:spec': {
      'f:replicas': {},
      'f:containers': {
        'k:{"name":"dns"}': { 'f:env': { '.': {}, 'k:{"name":"A"}': { '.': {}, 'f:name': {}, 'f:value': {} } } },
        'k:{"name":"injected"}': container({}),
      },
    },
  };
  const wanted = {
    spec: { args: ['c'], containers: [{ name: 'dns', image: 'dns:2', ports: [{ name: 'tcp', containerPort: 53 }] }] },
  };
  assert.equal(appliedTo(object, wanted, [entry('controller', 'Update', theirs), entry('me', 'Apply', mine)]), {
    spec: {
      containers: [
        { name: 'dns', env: [{ name: 'A', value: '1' }], image: 'dns:2', ports: [{ name: 'tcp', containerPort: 53 }] },
        { name: 'injected', image: 'mesh:1' },
      ],
      replicas: 3,
      defaulted: true,
      args: ['c'],
    },
    metadata: { finalizers: ['theirs'] },
  });
});

test('values of owned fields count, and what others own in a map that is owned while empty does not', () => {
  const own = { 'f:data': { 'f:a': {} }, 'f:labels': {}, 'f:list': { 'v:"x"': {} } };
  const others = [{ 'f:data': { 'f:b': {} }, 'f:labels': { 'f:added': {} } }];
  const object = { data: { a: '1', b: '1' }, labels: {}, list: ['x'] };
  const digest = (value: object): string => JSON.stringify(valuesOf(value, own, others));
  assert.is(digest({ data: { a: '1', b: '2' }, labels: { added: '1' }, list: ['y', 'x'] }), digest(object));
  assert.is.not(digest({ ...object, data: { a: '2' } }), digest(object));
  assert.is.not(digest({ ...object, list: [] }), digest(object));
  assert.is.not(digest({ ...object, labels: { own: '1' } }), digest(object));
});

test('a map that is owned while it is empty is the same when others have filled and taken it', () => {
  const [empty, label] = [{ 'f:data': {}, 'f:spec': { 'f:labels': {} } }, { 'f:metadata': { 'f:name': {} } }];
  const digest = (value: object, own: object): string =>
    JSON.stringify(valuesOf({ metadata: { name: 'x' }, ...value }, own));
  assert.is(digest({ data: { a: '1' } }, label), digest({}, { ...label, ...empty }));
  assert.is.not(digest({ selector: { a: '1' } }, label), digest({ selector: {} }, { ...label, 'f:selector': {} }));
});

test('steps that no server writes are no values', () => {
  const fields = { 'k:{': {}, 'k:1': {}, 'i:x': {}, 'f:__proto__': {}, x: {} };
  assert.equal(new Set(Object.values(Object.fromEntries(valuesOf([1], fields) as [])).map(String)), new Set(['null']));
});

test('what others add to lists and maps of an apply is told in words, and no other field of theirs', () => {
  const web = 'k:{"name":"web"}';
  const own = {
    'f:metadata': { 'f:labels': { 'f:app': {} } },
    'f:data': {},
    'f:spec': {
      'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
      'f:template': { 'f:spec': { 'f:containers': { [web]: { '.': {}, 'f:env': { 'k:{"name":"A"}': {} } } } } },
      'f:items': { 'v:"a"': {} },
    },
  };
  const item = { '.': {}, 'f:port': {}, 'f:name': {} };
  const entries = [
    entry('me', 'Apply', own),
    entry('kubectl-patch', 'Update', {
      'f:metadata': { 'f:labels': { 'f:team': {}, 'f:app': {} }, 'f:annotations': { '.': {}, 'f:note': {} } },
      'f:data': { '.': {}, 'f:extra': {} },
      'f:spec': {
        'f:ports': { 'k:{"port":81,"protocol":"TCP"}': item, 'k:{"port":53,"protocol":"UDP"}': item },
        'f:replicas': {},
        'f:template': {
          'f:spec': {
            'f:hostNetwork': {},
            'f:containers': {
              [web]: { 'f:env': { 'k:{"name":"DEBUG"}': { '.': {} } }, 'f:image': {} },
              'k:{"name":"mesh"}': { '.': {}, 'f:image': {} },
            },
          },
        },
        'f:items': { 'v:"b"': {} },
      },
      'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } },
    }),
    entry('jane', 'Apply', { 'f:metadata': { 'f:labels': { 'f:team': {}, 'f:mine': {} } } }),
    entry('kube-controller-manager', 'Update', { 'f:metadata': { 'f:labels': { 'f:controller': {} } } }),
    entry('proxy', 'Update', { 'f:metadata': { 'f:labels': { 'f:status': {} } } }, 'status'),
  ];
  assert.equal(addedByOthers(entries, 'me'), [
    'label team of kubectl-patch',
    'data extra of kubectl-patch',
    'port 81 of kubectl-patch',
    'port 53 UDP of kubectl-patch',
    'template container web env DEBUG of kubectl-patch',
    'template container mesh of kubectl-patch',
    'item b of kubectl-patch',
    'label mine of jane',
  ]);
  assert.equal(addedByOthers(entries, 'who owns nothing'), []);
  assert.equal(addedByOthers([entry('me', 'Apply', own)], 'me'), []);
});

test('names that others choose are told shortened, and hostile ones do no harm', () => {
  const own = entry('me', 'Apply', { 'f:metadata': { 'f:labels': { 'f:app': {} } }, 'f:list': { 'k:{"a":1}': {} } });
  const others = { [`f:${'x'.repeat(300)}`]: {}, 'f:constructor': {} };
  const told = addedByOthers(
    [own, entry('jane', 'Update', { 'f:metadata': { 'f:labels': others }, 'f:list': { 'k:{': {}, 'k:[]': {} } })],
    'me',
  );
  assert.is(told[0]?.length, 'label  of jane'.length + 80);
  assert.equal(told.slice(1), ['label constructor of jane', 'list { of jane', 'list  of jane']);
});

test.run();
