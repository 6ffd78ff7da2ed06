# thaw. Everything that a target needs beyond Go, Node, Python, Java and Debian's tools is
# installed by the target itself, pinned, into $(THAW_CACHE).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test check lint unit race fuzz conformance e2e e2e-deploy bench build clean build-ApiFunction build-WorkerFunction build-FilesFunction

export THAW_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/thaw
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
STAGE := .ci/stage
FUZZTIME ?= 2m

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: ## start a server and drive it: list, call, an error, progress, a task, MCTP, a Lambda event
	@cd e2e && go run ./demo

test: ## every test (under 30 minutes on 2 cores), installing what it needs
	@$(STAGE) lint $(MAKE) --no-print-directory lint
	@$(STAGE) race $(MAKE) --no-print-directory race
	@$(STAGE) conformance $(MAKE) --no-print-directory conformance
	@$(STAGE) e2e $(MAKE) --no-print-directory e2e
	@$(STAGE) demo $(MAKE) --no-print-directory demo

check: ## the inner loop (under 3 minutes): format, vet, staticcheck, unit tests
	@$(STAGE) lint $(MAKE) --no-print-directory lint
	@$(STAGE) unit $(MAKE) --no-print-directory unit

lint: ## gofmt, vet and staticcheck over both modules
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; fi
	@go vet ./...
	@go run $(STATICCHECK) ./...
	@cd e2e && go vet ./... && go run $(STATICCHECK) ./...

unit: ## the root module's tests
	@go test ./...

race: ## the root module's tests under the race detector
	@go test -race ./...

conformance: ## the official MCP suite against the fixture server
	@go run ./conformance/run

e2e: ## foreign clients, emulators and differential tests (own module)
	@cd e2e && go test -count=1 -timeout 20m ./...

e2e-deploy: ## sam build and sam deploy to an emulator of AWS, and a client against what is there
	@cd e2e && go test -count=1 -timeout 20m ./deploy

bench: ## one line a budget: ratio NAME VALUE budget BUDGET
	@cd e2e && go run ./bench

fuzz: ## every fuzz target for FUZZTIME (2m) each
	@for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

build: ## a static, stripped build of functions/server for Lambda in bin/
	@CGO_ENABLED=0 go build -tags lambda.norpc -trimpath -ldflags '-s -w' -o bin/server ./functions/server

# sam build makes each function by the target of its name, in a copy of this folder.
LAMBDA_ARCH ?= arm64
build-ApiFunction build-WorkerFunction build-FilesFunction:
	@CGO_ENABLED=0 GOOS=linux GOARCH=$(LAMBDA_ARCH) go build -tags lambda.norpc -trimpath -ldflags '-s -w' -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/server
	@if [ -f apikeys ]; then install -m 0644 apikeys "$(ARTIFACTS_DIR)/apikeys"; else echo 'no file apikeys: this build cannot be deployed with Auth=apikey'; fi

clean: ## what the targets left in the tree
	@rm -rf bin out .thaw .aws-sam
