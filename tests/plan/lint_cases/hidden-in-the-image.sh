docker run -d --gpus all -p 127.0.0.1:30000:30000 lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a /start.sh
