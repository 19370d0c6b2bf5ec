"""The documents of modules, without which dnf refuses packages that were built in one."""
import re


def field(document, name):
    found = re.search(r'^ +%s: *"?([^"\n]+?)"? *$' % name, document, re.MULTILINE)
    return found.group(1) if found else ''


def module_documents(base, packages):
    """The repositories' own documents of the module streams that the packages belong to, and of those they need."""
    texts = [repo.get_metadata_content('modules') for repo in base.repos.iter_enabled()]
    documents = [part.strip('\n') for text in texts for part in re.split(r'(?m)^(?:---|\.\.\.)[ \t]*$', text or '')]
    streams = [document for document in documents if re.match(r'document: *modulemd *$', document, re.MULTILINE)]
    # Of documents that list the same file, the newest.
    streams.sort(key=lambda document: int(field(document, 'version') or 0), reverse=True)
    kept = []
    for package in packages:
        entry = '- %s-%d:%s-%s.%s' % (package.name, package.epoch, package.version, package.release, package.arch)
        listing = [document for document in streams if entry in map(str.strip, document.splitlines())]
        kept += [document for document in listing[:1] if document not in kept]
    names = {field(document, 'name') for document in kept}
    for module in needed_modules(base, names):
        identity = (module.getName(), module.getStream(), module.getVersion(), module.getContext())
        kept += [document for document in streams if document not in kept and identity == tuple(
            field(document, name) for name in ('name', 'stream', 'version', 'context'))]
    names = {field(document, 'name') for document in kept}
    kept += [document for document in documents
             if re.match(r'document: *modulemd-defaults *$', document, re.MULTILINE) and field(document, 'module') in names]
    return ''.join('---\n%s\n...\n' % document for document in sorted(set(kept)))


def needed_modules(base, names):
    """Active streams that those of these names require, with what they require in turn."""
    container = base._moduleContainer
    active = [module for module in container.getModulePackages() if container.isModuleActive(module)]
    reached = set(names)
    before = 0
    while before < len(reached):
        before = len(reached)
        for module in active:
            if module.getName() in reached:
                for dependencies in module.getModuleDependencies():
                    for requires in dependencies.getRequires():
                        reached |= set(requires)
    return [module for module in active if module.getName() in reached - set(names)]
